"""The znodes below /config, read and written.

What is written is read before, changed, and written where nobody else wrote in between, with a check that the
controller is the one it was: as in Kafka, there are no changes of configs while there is no controller, nor while KRaft
takes over. The notification by which everybody is told is made in the same transaction (Kafka makes it after it, so that
a broker that dies in between leaves the others behind). Nodes of clients and users that have become empty are deleted.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster.zookeeper.asking import AT_ONCE, expect
from pykafkad.cluster.zookeeper.entities import BROKERS, CLIENTS, IPS, TOPICS, USERS
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.quiet import always
from pykafkad.slices import chunks
from pykafkad.zookeeper.client import (
    BAD_ARGUMENTS,
    BAD_VERSION,
    NO_NODE,
    NODE_EXISTS,
    NOT_EMPTY,
    OK,
    Check,
    Create,
    Delete,
    GetChildren,
    GetData,
    Multi,
    Result,
    SetData,
)
from pykafkad.zookeeper.config_znodes import (
    CONFIG,
    CONFIG_CHANGES,
    read_config,
    write_config,
    write_config_change,
)
from pykafkad.zookeeper.znodes import CONTROLLER, SHOWN, MalformedZnode, parents, read_controller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pykafkad.cluster.zookeeper.asking import Asking
    from pykafkad.cluster.zookeeper.entities import Changes
    from pykafkad.cluster.zookeeper.notifications import Notifications
    from pykafkad.quiet import Allows
    from pykafkad.slices import Work
    from pykafkad.zookeeper.client import Write

    Along = Callable[[str], Sequence[Write]]  # what is written with it
    Wanted = Callable[[str, Mapping[str, str]], Mapping[str, str]]  # of a path that holds these configs

MAX_TRIES = 10  # of a znode that others write at the same time
log = logger("zookeeper")

NO_CONTROLLER = "Cannot set entity configs when there is no controller."
EMPTIED = (CLIENTS, USERS, IPS)  # whose nodes are deleted when they are empty


class EntityConfigs:
    def __init__(self, asking: Asking, notifications: Notifications, allows: Allows = always) -> None:
        self._asking = asking
        self._allows = allows
        self._notifications = notifications

    # -- reading

    def paths(self) -> Work:
        """All there are, below /config."""
        found: list[str] = []
        for kind in (TOPICS, CLIENTS, USERS, BROKERS, IPS):
            names = yield from self._asking.children(f"{CONFIG}/{kind}")
            found += [f"{kind}/{name}" for name in names]
            if kind == USERS:
                found += yield from self._paths_of_clients(names)
        return found

    def _paths_of_clients(self, users: Sequence[str]) -> Work:
        parents = [f"{USERS}/{user}/{CLIENTS}" for user in users]
        results = yield from self._asking.ask_all([GetChildren(f"{CONFIG}/{path}") for path in parents])
        return [
            f"{parent}/{name}"
            for parent, result in zip(parents, results, strict=True)
            for name in expect(result, NO_NODE).children
        ]

    def read(self, paths: Sequence[str]) -> Work:
        """path -> its configs; those of a node that is not there are empty. What cannot be read is left out, and hides
        no other."""
        results = yield from self._asking.ask_all([GetData(f"{CONFIG}/{path}") for path in paths])
        found = {}
        for path, result in zip(paths, results, strict=True):
            try:
                found[path] = read_config(expect(result, NO_NODE, BAD_ARGUMENTS).data)
            except MalformedZnode as error:
                if self._allows(log, "configs that cannot be read", path.partition("/")[0][:SHOWN]):
                    log.error(f"{path[:SHOWN]}: {error}")
            yield
        return found

    # -- writing

    def write(self, changes: Changes) -> Work:
        """KafkaError where there is no controller, or others write all the time; what was written until then stays."""
        for some in chunks(list(changes), AT_ONCE):
            yield from self._write(
                some, lambda path, found: changed(found, changes[path]), self._announcement
            )

    def put(self, wanted: Mapping[str, Mapping[str, str]]) -> Work:
        """Whatever they hold, they hold this now; nobody is told. Of topics that are about to be made."""
        for some in chunks(list(wanted), AT_ONCE):
            yield from self._write(some, lambda path, found: wanted[path], lambda path: ())

    def _announcement(self, path: str) -> Sequence[Write]:
        return (self._notifications.op(write_config_change(path)),)

    def _write(self, paths: Sequence[str], wanted: Wanted, along: Along) -> Work:
        left = list(paths)
        for _ in range(MAX_TRIES):
            left = yield from self._try(left, wanted, along)
            if not left:
                return
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR, f"others write /config/{left[0]} all the time")

    def _try(self, paths: Sequence[str], wanted: Wanted, along: Along) -> Work:
        """Those that somebody else wrote meanwhile, so that they have to be looked at again."""
        controller, *found = yield from self._asking.ask(
            GetData(CONTROLLER), *(GetData(f"{CONFIG}/{path}") for path in paths)
        )
        version = controller_version(controller)
        writes = []
        left = []
        for path, result in zip(paths, found, strict=True):
            configs = wanted(path, read_config(expect(result, NO_NODE).data))
            if not configs and path.startswith(EMPTIED):
                left += yield from self._clean(path, result, along(path))
            else:
                check, write = Check(CONTROLLER, version), write_of(path, result, configs)
                writes.append((path, Multi([check, write, *along(path)])))
        results = yield from self._asking.ask(*(multi for _, multi in writes))
        for (path, _), result in zip(writes, results, strict=True):
            error = expect(result, NO_NODE, NODE_EXISTS, BAD_VERSION, path=path).error
            if error == NO_NODE:  # so is something above it
                yield from self._asking.create(f"{CONFIG}/{path}".rpartition("/")[0])
                yield from self._asking.create(CONFIG_CHANGES)
            left += [path] if error else []
        return left

    def _clean(self, path: str, found: Result, along: Sequence[Write]) -> Work:
        """Nothing is left in it: it goes, and what is above it, if that is empty, too. The path, where it changed."""
        full = f"{CONFIG}/{path}"
        if found.error == NO_NODE:
            return []
        (result,) = yield from self._asking.ask(Multi([Delete(full, found.version), *along]))
        error = expect(result, NO_NODE, NOT_EMPTY, BAD_VERSION, path=full).error
        if error == NOT_EMPTY:  # of a user with quotas for its clients
            emptied = SetData(full, write_config({}), found.version)
            (result,) = yield from self._asking.ask(Multi([emptied, *along]))
            error = expect(result, NO_NODE, BAD_VERSION, path=full).error
        if error == OK:
            yield from self._clean_above(full)
        return [path] if error == BAD_VERSION else []

    def _clean_above(self, full: str) -> Work:
        """.../users/U/clients, and users/U if it holds nothing itself."""
        for path in reversed(parents(full)[2:-1]):
            (found,) = yield from self._asking.ask(GetData(path))
            if found.error or read_config(found.data):
                return
            (result,) = yield from self._asking.ask(Delete(path, found.version))
            if result.error:  # there are others
                return


def write_of(path: str, found: Result, configs: Mapping[str, str]) -> Write:
    full, data = f"{CONFIG}/{path}", write_config(configs)
    return Create(full, data) if found.error else SetData(full, data, found.version)


def controller_version(result: Result) -> int:
    """Of what was read at /controller."""
    if result.error == NO_NODE:
        raise KafkaError(errors.STALE_CONTROLLER_EPOCH, NO_CONTROLLER)
    if read_controller(expect(result, path=CONTROLLER).data).kraft_epoch > 0:
        why = "Cannot set entity configs directly when there is a KRaft controller."
        raise KafkaError(errors.STALE_CONTROLLER_EPOCH, why)
    return result.version


def changed(configs: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**configs, **changes}
    return {key: value for key, value in merged.items() if value is not None}
