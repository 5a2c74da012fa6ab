"""Every message's JSON is what Kafka's converters write."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from pykafkad import messages
from pykafkad.tools import message_json

GOLDEN = Path(__file__).parents[1] / "golden" / "messages.jsonl.gz"
HEADERS = {"RequestHeader", "ResponseHeader"}


def test_all_golden_messages() -> None:
    compared = 0
    with gzip.open(GOLDEN) as lines:
        for line in lines:
            known = json.loads(line)
            if known["message"] in HEADERS:
                continue
            cls = getattr(messages, known["message"])
            message = cls.decode(bytes.fromhex(known["hex"]), known["version"])
            found = json.loads(message_json.to_text(message_json.to_value(message, known["version"])))
            assert found == known["json"], known["message"]
            assert list(found) == list(known["json"]), "the fields are in the schema's order"
            compared += 1
    assert compared == 3620


def test_texts_are_escaped_as_kafkas_library_does() -> None:
    assert message_json.to_text('a"b\\c\n\t\x01\x7fé😀/') == '"a\\"b\\\\c\\n\\t\\u0001\x7fé😀/"'
    assert message_json.to_text({"a": [1, 2.0, 1e10, None, True, ""]}) == '{"a":[1,2.0,1.0E10,null,true,""]}'
    assert message_json.to_text([float("nan"), float("-inf")]) == '["NaN","-Infinity"]'
