"""Mutated, cut and pipelined frames into the loop: `python tests/fuzz/fuzz_frames.py --seconds 60 --seed 1`.

Each case is one loop with a few peers that send frames, good and bad, in pieces, go away at any moment, and read
slowly; its handler answers at once, later, with objects, with file ranges, or raises. Whatever happens, each peer
gets a prefix of the answers it is due, whole and in order; one that sent only good frames and stays gets all of
them; the bounds on answers hold; and nothing is ever reported as a mistake of the loop's own. The bytes of some travel
plainly, of others through one of the transports of seam_kit.py.
Meant to be run under ASAN (`make asan`). A failure prints the seed of its case.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.reactor_kit import LOOPS, Encodable, FileRange, Loop, Peer, body_of, frame  # noqa: E402
from tests.seam_kit import KINDS, join  # noqa: E402

SIZES = [0, 1, 10, 200, 2000, 65_530, 65_540, 200_000]
BAD = [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"GET / HTTP/1.1", b"\x16\x03\x01\0\xa5", b"\x80\0\0\0\0\0"]
CONTENT_BYTES = 1_000_000
STEPS_MAX = 400


class Case:
    """One seed's loop, peers and what is due to them."""

    def __init__(self, module: ModuleType, seed: int, path: Path, content: bytes) -> None:
        self.chance = random.Random(seed)
        self.module, self.path, self.content = module, path, content
        self.loop = Loop(module, self.on_frame, on_pass_end=self.answer_some)
        self.due: dict[Any, bytearray] = {}
        self.handled: dict[Any, bytearray] = {}
        self.whole: dict[Peer, bytes] = {}
        self.sent: dict[Peer, bytearray] = {}
        self.got: dict[Peer, bytearray] = {}
        self.honest: dict[Peer, bool] = {}
        self.connection_of: dict[Peer, Any] = {}
        self.open_tickets: list[tuple[Any, Any]] = []
        self.kept: list[tuple[memoryview, bytes]] = []

    # -- the broker's side

    def on_frame(self, connection: Any, buffer: Any, start: int, end: int) -> Any:
        body = body_of(buffer, start, end)
        assert connection.queued_answers < self.module.ANSWERS_MAX
        self.handled[connection] += frame(body)
        if body.startswith(b"raise"):
            raise ValueError("as asked")
        self.keep_some(memoryview(buffer)[start:end], body)
        parts, whole = self.answer_to(body)
        self.due[connection] += whole
        kind = self.chance.randrange(8)
        if kind == 0:
            return Encodable(lambda: parts)
        if kind == 1:
            ticket = connection.defer()
            self.open_tickets.append(
                (ticket, parts if self.chance.random() < 0.5 else Encodable(lambda: parts))
            )
            return ticket
        return parts

    def answer_to(self, body: bytes) -> tuple[Any, bytes]:
        if self.chance.random() < 0.8:
            return frame(body), frame(body)
        offset = self.chance.randrange(CONTENT_BYTES)
        size = min(self.chance.choice([0, 1, 5000, 16_384, 100_000, 700_000]), CONTENT_BYTES - offset)
        head = (len(body) + size).to_bytes(4, "big") + body
        return [head, FileRange(self.path, offset, size)], head + self.content[offset : offset + size]

    def keep_some(self, view: memoryview, body: bytes) -> None:
        """A view that is kept must not change."""
        if self.chance.random() < 0.02:
            self.kept.append((view, body))
            if len(self.kept) > 20:
                self.check_kept()

    def check_kept(self) -> None:
        for view, body in self.kept:
            assert view == body, "kept bytes changed"
        self.kept.clear()

    def answer_some(self) -> None:
        self.chance.shuffle(self.open_tickets)
        for _ in range(min(len(self.open_tickets), self.chance.randrange(6))):
            ticket, parts = self.open_tickets.pop()
            ticket.answer(parts)

    # -- the peers

    def join(self) -> None:
        peer, connection = join(self.loop, self.chance.choice(["plain", "plain", *KINDS]))
        self.loop.peers.remove(peer)  # it reads and writes when this case says so
        self.due[connection], self.handled[connection] = bytearray(), bytearray()
        self.connection_of[peer] = connection
        self.sent[peer], self.got[peer] = self.stream(peer), bytearray()
        self.whole[peer] = bytes(self.sent[peer])

    def stream(self, peer: Peer) -> bytearray:
        chance, out = self.chance, bytearray()
        for _ in range(chance.choice([1, 5, 40, 400])):
            out += frame(chance.randbytes(chance.choice(SIZES[: chance.choice([4, 5, 8])])))
        self.honest[peer] = chance.random() < 0.6
        if not self.honest[peer]:
            kind = chance.randrange(4)
            if kind == 0:
                out += chance.choice(BAD) + chance.randbytes(20)
            elif kind == 1:
                out += frame(b"raise") + frame(b"after it")
            elif kind == 2:
                del out[chance.randrange(len(out)) :]
            else:
                out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
        return out

    def step(self) -> None:
        for peer in list(self.sent):
            chance = self.chance
            stream = self.sent[peer]
            if stream and not peer.unsent:
                size = chance.choice([1, 3, 50, 5000, 100_000])
                peer.send_bytes(bytes(stream[:size]))
                del stream[:size]
            peer.push()
            if chance.random() < 0.7:
                self.pull(peer, chance.choice([1, 1000, 1 << 20]))
            if not self.honest[peer] and chance.random() < 0.01:
                peer.sock.close()
                self.leave(peer)
        self.loop.turn(self.chance.choice([1, 1, 3]))

    def pull(self, peer: Peer, limit: int) -> None:
        peer.pull(limit)
        self.got[peer] += peer.received
        peer.received.clear()

    def leave(self, peer: Peer) -> None:
        self.check(peer, all_of_it=False)
        del self.sent[peer], self.got[peer], self.honest[peer]

    def check(self, peer: Peer, *, all_of_it: bool) -> None:
        connection = self.connection_of[peer]
        due, got, handled = self.due[connection], self.got[peer], self.handled[connection]
        assert self.whole[peer].startswith(handled), "other frames were handled than were sent"
        assert not all_of_it or handled == self.whole[peer], "frames were not handled"
        assert due.startswith(got), "answers came that were not due, or in another order"
        assert not all_of_it or due == got, f"{len(due) - len(got)} bytes of answers are missing"

    def run(self) -> None:
        for _ in range(self.chance.randrange(1, 6)):
            self.join()
        for _ in range(self.chance.randrange(STEPS_MAX)):
            self.step()
        self.finish()
        self.check_kept()
        assert not self.loop.errors, self.loop.errors
        self.loop.close()

    def finish(self) -> None:
        """Honest peers send the rest and get all their answers; the others just end."""
        for peer in [peer for peer, honest in self.honest.items() if not honest]:
            peer.sock.close()
            self.leave(peer)
        for peer, stream in self.sent.items():
            peer.send_bytes(bytes(stream))
        self.loop.until(self.all_is_answered)
        for peer in list(self.sent):
            self.check(peer, all_of_it=True)
            peer.sock.close()

    def all_is_answered(self) -> bool:
        for peer in self.sent:
            peer.push()
            self.pull(peer, 1 << 22)
        return not self.open_tickets and all(
            len(self.handled[self.connection_of[peer]]) == len(self.whole[peer])
            and len(self.got[peer]) == len(self.due[self.connection_of[peer]])
            for peer in self.sent
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None, help="run this one case")
    arguments = parser.parse_args()
    seeds = (
        [arguments.seed] if arguments.seed is not None else iter(range(random.randrange(1 << 40), 1 << 41))
    )
    end = time.monotonic() + arguments.seconds
    count = 0
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "segment"
        content = random.Random(0).randbytes(CONTENT_BYTES)
        path.write_bytes(content)
        for seed in seeds:
            for module in LOOPS:
                try:
                    Case(module, seed, path, content).run()
                except BaseException:
                    print(f"failed: {module.__name__} --seed {seed}", flush=True)
                    raise
            count += 1
            if time.monotonic() > end:
                break
    print(f"fuzz_frames: {count} cases, each on {len(LOOPS)} loops")


if __name__ == "__main__":
    main()
