"""The codec and the slow reference codec agree, on messages made at random and on mutated bytes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pykafkad import messages
from pykafkad.hot import wire
from tests.fuzz.fuzz_wire import golden, mutant
from tests.reference import values
from tests.reference.codec import BadMessage, Codec
from tests.reference.forms import from_plain, to_plain

SEEDS = range(8)
NAMES = [name for name in messages.names() if getattr(messages, name).max_version >= 0]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_messages_have_the_reference_codec_s_bytes_and_values(seed: Any) -> None:
    chance = random.Random(seed)
    for name in NAMES:
        cls = getattr(messages, name)
        version = chance.randint(cls.min_version, cls.max_version)
        codec = Codec(name, version)
        plain = values.message(codec, chance)
        data = codec.encode(plain)
        assert from_plain(cls, plain).encode(version) == data, (seed, name, version)
        decoded, end = cls.decode_prefix(data, version)
        assert end == len(data), (seed, name, version)
        assert repr(to_plain(decoded)) == repr(codec.decode(data)[0]), (seed, name, version)


@pytest.mark.parametrize("seed", SEEDS)
def test_mutated_messages_get_the_reference_codec_s_verdict(seed: Any) -> None:
    chance, refused = random.Random(seed), 0
    cases = [case for case in golden() if len(case[2]) < 800]
    for _ in range(1500):
        name, version, data = mutant(chance, cases)
        cls = getattr(messages, name)
        if not cls.min_version <= version <= cls.max_version:
            continue
        try:
            expected = Codec(name, version).decode(data)
        except BadMessage:
            refused += 1
            with pytest.raises(wire.WireError):
                cls.decode(data, version)
            continue
        decoded, end = cls.decode_prefix(data, version)
        context = (seed, name, version, data.hex())
        assert (repr(to_plain(decoded)), data[end:]) == (repr(expected[0]), expected[1]), context
    assert 300 < refused < 1400
