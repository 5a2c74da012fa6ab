"""What the torture makes of its results: a kind that cannot run here is no success if everything is required."""

from __future__ import annotations

import pytest

import tests.torture.__main__ as torture


@pytest.fixture(autouse=True)
def nothing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torture, "why_not", lambda kind: "there is no strace")


@pytest.mark.parametrize(("required", "code"), [("1", 1), ("0", 0), (None, 0)])
def test_a_kind_that_is_skipped_fails_where_all_is_required(
    required: str | None, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("REQUIRE_ALL", raising=False)
    if required is not None:
        monkeypatch.setenv("REQUIRE_ALL", required)
    assert torture.main(["--short", "--seed", "1"]) == code
    said = capsys.readouterr().out
    assert said.count("SKIPPED, there is no strace") == len(torture.KINDS)
    assert said.count("failed: REQUIRE_ALL=1") == (len(torture.KINDS) if code else 0)
