from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad import properties

# Read by java.util.Properties too: EXPECTED is what it found.
SAMPLE = (
    b"# comment \\\n! other\n\n   \t\n  a = b \nc:d\ne f\ng\nh==i\nj = = k\n"
    b"long=one,\\\n   two,\\\n\tthree\n#x\\\ny=1\ncrlf=1\r\ncr=2\rq=3\n"
    b"esc\\ key\\:\\==v\\tx\\n\\r\\f\\q\\\\z\nu=\\u0041\\u4e2d\\uD83D\\uDE00\nlat=\xe9\xff\n"
    b"end\\\\=x\\\\\nk\\\n  ey=contkey\nbl=a\\\n\n\nbl2=a\\\n   # not comment\n\f ff = 1\n"
    b"dup=1\ndup=2\n=emptykey\nempty=\n:also\ntrail=ab  \\  \nlast=x\\"
)
EXPECTED = {
    "": "also",
    "a": "b ",
    "bl": "a",
    "bl2": "a# not comment",
    "c": "d",
    "cr": "2",
    "crlf": "1",
    "dup": "2",
    "e": "f",
    "empty": "",
    "end\\": "x\\",
    "esc key:=": "v\tx\n\r\fq\\z",
    "ff": "1",
    "g": "",
    "h": "=i",
    "j": "= k",
    "key": "contkey",
    "last": "x",
    "lat": "\xe9\xff",
    "long": "one,two,three",
    "q": "3",
    "trail": "ab    ",
    "u": "A\u4e2d\U0001f600",
    "y": "1",
}


def test_a_file_reads_as_java_reads_it(tmp_path: Path) -> None:
    (tmp_path / "sample.properties").write_bytes(SAMPLE)
    assert properties.load(str(tmp_path / "sample.properties")) == EXPECTED


def test_pairs_keep_the_order_of_the_file() -> None:
    assert list(properties.parse("b=1\na=2\nc=3")) == ["b", "a", "c"]


@pytest.mark.parametrize("text", ["a=\\u12g4", "a=\\u12", "a=\\u"])
def test_a_malformed_escape_names_its_line(text: str) -> None:
    with pytest.raises(properties.PropertiesError, match=r"line 2: Malformed \\uxxxx encoding"):
        properties.parse(f"x=1\n{text}\n")


def test_writing_escapes_as_java_does() -> None:
    pairs = {" a b:=#!": " x\t y=:#!\u00e9\\\n\r\f \u4e2d"}
    # what Properties.store writes
    assert properties.dump(pairs) == (
        "\\ a\\ b\\:\\=\\#\\!=\\ x\\t y\\=\\:\\#\\!\\u00E9\\\\\\n\\r\\f \\u4E2D\n"
    )


def test_what_is_written_reads_back() -> None:
    pairs = {**EXPECTED, " lead": "  two ", "#no": "!yes", "\U0001f600": "\U0001f600 \x00\x7f"}
    text = properties.dump(pairs, comments=("made by a test",))
    assert text.startswith("#made by a test\n")
    assert text.isascii()
    assert properties.parse(text) == pairs
