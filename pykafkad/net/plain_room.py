"""The memory of frames that are not whole yet, for net/plain_loop.py; ext/reactor_room.pxi is the same in Cython.

Owns the list of connections that have such a frame, and of those that wait for memory to go on with one. A large frame
grows to half of the memory that the others leave. Then its connection is not read from until there is more; only the
one that has waited longest always goes on, so that every frame has its turn. Of small frames only the number counts:
where all of them together take more than the bound, the connection that was read from least recently is closed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.net.plain_connections import Connection

UNFINISHED_BYTES_MAX = 256 * 1024 * 1024
RECEIVE_CHUNK_BYTES = 64 * 1024


class FrameRoom:
    def __init__(self, most: int, max_frame_bytes: int) -> None:
        self._used = 0  # the favoured one's do not count
        self._most = most
        self._max_frame_bytes = 0
        self.expect(max_frame_bytes)
        self.unfinished: dict[Connection, None] = {}  # read from, the one least recently fed first
        self.waiting: dict[Connection, None] = {}  # not read from, in the order in which they came to wait
        self._held: dict[Connection, int] = {}  # bytes of each
        self._favoured: Connection | None = None

    def expect(self, max_frame_bytes: int) -> None:
        """Frames may be as large as that, and one more may be under way in a handler."""
        self._max_frame_bytes = max(self._max_frame_bytes, max_frame_bytes)
        self._limit = self._most + self._max_frame_bytes  # where the unfinished frames give way

    @property
    def used(self) -> int:
        return sum(self._held.values())

    def has_room(self, connection: Connection) -> bool:
        """What is received next of a large frame may be kept."""
        have = self._held.get(connection, 0)
        if connection is self._favoured or have == 0 or connection._frames.wanted <= RECEIVE_CHUNK_BYTES:
            return True
        return have + RECEIVE_CHUNK_BYTES <= (self._most - (self._used - have)) / 2

    def follow(self, connection: Connection, *, same_frame: bool) -> None:
        """After bytes have come: has it an unfinished frame now, and is that the one it had before?"""
        have = 0 if connection.closed or connection._finishing else connection.frame_bytes
        if not have:
            return self.leave(connection)
        if not same_frame or connection not in self._held:
            connection.frame_began_ms = connection.reactor.now_ms
        self._hold(connection, have)
        self.unfinished.pop(connection, None)
        self.unfinished[connection] = None
        while self._used > self._limit and self.unfinished:
            next(iter(self.unfinished))._drop("the memory for unfinished frames is used up")

    def leave(self, connection: Connection) -> None:
        """It has no unfinished frame any more."""
        self._hold(connection, 0)
        del self._held[connection]
        self.unfinished.pop(connection, None)
        self.waiting.pop(connection, None)
        if self._favoured is connection:
            self._favoured = None

    def _hold(self, connection: Connection, size: int) -> None:
        if connection is not self._favoured:
            self._used += size - self._held.get(connection, 0)
        self._held[connection] = size

    def wait(self, connection: Connection) -> None:
        """There is no room for more of its frame."""
        self.unfinished.pop(connection, None)
        self.waiting[connection] = None
        connection._mark()

    def let_on(self) -> None:
        """The one that has waited longest, and those behind it as far as there is room for them."""
        while self.waiting:
            first = next(iter(self.waiting))
            if self._favoured is None:
                self._used -= self._held[first]
                self._favoured = first
            elif not self.has_room(first):
                return
            del self.waiting[first]
            first.frame_began_ms = first.reactor.now_ms  # what it had to wait is not its fault
            self.unfinished[first] = None
            first._settle()
