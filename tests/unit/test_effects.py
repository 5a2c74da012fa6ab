"""What operations of a machine want, added up."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad.pure.effects import Caller, Effects


def wanting(name: str) -> Effects:
    effects = Effects()
    effects.write(f"{name}'s key", f"{name}'s value")
    effects.after(5, name)
    effects.cancel(name)
    effects.reply(Caller(1, name, "/127.0.0.1"), name)
    return effects


def test_what_is_added_comes_after_what_was_there() -> None:
    effects, other = wanting("one"), wanting("other")
    effects.encoded = [(b"", b"")]
    effects.add(other)
    assert effects.records == [("one's key", "one's value"), ("other's key", "other's value")]
    assert effects.timers == [(("one",), 5), (("one",), None), (("other",), 5), (("other",), None)]
    assert [answer for _, answer in effects.replies] == ["one", "other"]
    assert effects.encoded is None, "they are not all of the records"


@pytest.mark.parametrize("atomic", [(True, True), (True, False), (False, True), (False, False)])
def test_records_are_one_batch_if_none_may_be_several(atomic: tuple[bool, bool]) -> None:
    effects, other = Effects(), Effects()
    effects.is_atomic, other.is_atomic = atomic
    effects.add(other)
    assert effects.is_atomic is all(atomic)


@pytest.mark.parametrize("name", ["on_refused", "on_committed", "work"])
def test_what_only_one_may_have_is_kept_whoever_has_it(name: str) -> None:
    def wanted(*_: Any) -> Effects:
        return Effects()

    for has in ("effects", "other", "none"):
        effects, other = Effects(), Effects()
        if has != "none":
            setattr(effects if has == "effects" else other, name, wanted)
        effects.add(other)
        assert getattr(effects, name) is (None if has == "none" else wanted)
