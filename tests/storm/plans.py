"""The requests of a burst: which lines, in which manner, with which requests. They follow from the seed and the burst's
number alone. Requests are numbered beginning with the burst's number, so that the log identifies them.
"""

from __future__ import annotations

import random

from tests.storm.lines import HANGUP, MANNERS, ONE, PIECES, PIPELINE, UNREAD, Line
from tests.storm.making import Making
from tests.storm.names import Names

NUMBERS = 1000  # more than a burst has requests
LIKELY = {ONE: 30, PIPELINE: 45, UNREAD: 10, HANGUP: 8, PIECES: 7}
AT_MOST = {ONE: 40, PIPELINE: 200, UNREAD: 200, HANGUP: 20, PIECES: 5}


def burst(names: Names, seed: int, number: int, only: str | None = None) -> list[Line]:
    chance = random.Random(f"{seed} {number}")
    making = Making(names, chance)
    lines = []
    at = number * NUMBERS
    for _ in range(chance.choice((1, 2, 3, 4, 5))):
        manner = chance.choices(MANNERS, [LIKELY[each] for each in MANNERS])[0]
        most = AT_MOST[manner] if chance.random() < 0.1 else min(30, AT_MOST[manner])
        requests = []
        for _ in range(chance.randint(1, most)):
            requests.append(making.request(at, only))
            at += 1
        lines.append(Line(manner, requests, chance.choice((1, 3, 7, 100)), chance.random()))
    return lines
