"""Instants, durations and date patterns, as the tools parse them."""

from __future__ import annotations

import time

import pytest

from pykafkad.tools import times


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:00.000", 0),
        ("1970-01-01T00:00:00.5", 5),
        ("2023-11-14T22:13:20.123", 1_700_000_000_123),
        ("2023-11-14T22:13:20.123Z", 1_700_000_000_123),
        ("2023-11-14T23:13:20.123+01:00", 1_700_000_000_123),
        ("2023-11-14T21:13:20.123-01", 1_700_000_000_123),
        ("2023-11-15T03:43:20.123+0530", 1_700_000_000_123),
    ],
)
def test_instants(text: str, milliseconds: int) -> None:
    assert times.parse_datetime_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["2023-11-14", "2023-11-14T22:13:20", "2023-13-14T00:00:00.000", "xTy"])
def test_no_instants(text: str) -> None:
    with pytest.raises(ValueError, match="pars"):
        times.parse_datetime_ms(text)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT0S", 0),
        ("P1D", 86_400_000),
        ("PT1H", 3_600_000),
        ("P2DT3H4M5.678S", 2 * 86_400_000 + 3 * 3_600_000 + 4 * 60_000 + 5_678),
        ("-PT6H+3M", -6 * 3_600_000 - 180_000),
        ("PT-6H3M", -6 * 3_600_000 + 180_000),
        ("PT-1.5S", -1_500),
        ("pt20.345s", 20_345),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert times.parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1D", "P1H", "PT1D", "PTS", "P1M", "P1Y"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="Text cannot be parsed to a Duration"):
        times.parse_duration_ms(text)


def test_date_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    moment = 1_700_000_000_123
    assert times.format_date("yyyy-MM-dd HH:mm:ss:SSS", moment) == "2023-11-14 22:13:20:123"
    assert times.format_date("yy.M.d 'at' h:m a", moment) == "23.11.14 at 10:13 PM"
    assert times.format_date("EEE MMM dd ''yy", moment) == "Tue Nov 14 '23"
    with pytest.raises(ValueError, match="Illegal pattern character 'q'"):
        times.format_date("q", moment)
