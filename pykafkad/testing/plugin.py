"""The pytest plugin: brokers as fixtures, and what a failed test's broker looked like in its report.

Owns the fixtures and the mark `kafka`. Nothing of the broker is imported before a test asks for one, so installing
pykafkad costs other test runs next to nothing. Each worker of pytest-xdist is a process with brokers of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.testing.broker import Broker
    from pykafkad.testing.pool import Pool
    from pykafkad.testing.report import Watched

MARK = (
    "kafka(config=None, topics=()): configs and topics of the broker that the fixture `kafka` gives this test"
)
TOPIC_LETTERS_MAX = 200


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARK)


@pytest.fixture(scope="session")
def kafka_config() -> dict[str, object]:
    """Configs of the brokers of `kafka` and `kafka_broker`. Define a fixture of this name to change them."""
    return {}


@pytest.fixture(scope="session")
def _kafka_pool() -> Iterator[Pool]:
    from pykafkad.testing.pool import Pool

    pool = Pool()
    yield pool
    pool.close()


@pytest.fixture
def kafka(
    request: pytest.FixtureRequest, kafka_config: Mapping[str, object], _kafka_pool: Pool
) -> Iterator[Broker]:
    """A broker of this test's own, at `kafka.bootstrap_servers`, with nothing in it but the topics of the mark."""
    config, topics = marked(request.node)
    wanted = {**kafka_config, **config}
    broker = _kafka_pool.take(wanted)
    try:
        watch(request.node, broker)
        if topics:
            broker.create_topics(topics)
        yield broker
    finally:
        _kafka_pool.give(broker, wanted)


@pytest.fixture(scope="session")
def kafka_broker(request: pytest.FixtureRequest, kafka_config: Mapping[str, object]) -> Iterator[Broker]:
    """One broker for the whole run, which all tests that ask for it share."""
    from pykafkad.testing.broker import Broker

    with Broker(config=kafka_config) as broker:
        request.config.stash[SHARED] = broker
        yield broker
        del request.config.stash[SHARED]


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest) -> str:
    """The name of a new topic with one partition: on `kafka_broker` if the test asks for that one, else on `kafka`."""
    shared = "kafka_broker" in request.fixturenames and "kafka" not in request.fixturenames
    broker: Broker = request.getfixturevalue("kafka_broker" if shared else "kafka")
    import uuid

    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name)[:TOPIC_LETTERS_MAX]
    name = f"{readable}-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name)
    return name


@pytest.fixture
def kafka_factory(request: pytest.FixtureRequest) -> Iterator[Callable[..., Broker]]:
    """Makes brokers with the arguments of pykafkad.testing.Broker; they end with the test."""
    from pykafkad.testing.broker import Broker

    made: list[Broker] = []

    def make(*arguments: Any, **options: Any) -> Broker:
        broker = Broker(*arguments, **options)
        made.append(broker)
        watch(request.node, broker)
        return broker

    yield make
    for broker in made:
        broker.close()


def marked(node: pytest.Item) -> tuple[dict[str, object], dict[str, int]]:
    """The configs and topics of the marks; the nearest mark counts most."""
    config: dict[str, object] = {}
    topics: dict[str, int] = {}
    for mark in reversed(list(node.iter_markers("kafka"))):
        try:
            more_config, more_topics = mark_of(*mark.args, **mark.kwargs)
        except TypeError as problem:
            raise pytest.UsageError(f"@pytest.mark.{MARK.partition(':')[0]}: {problem}") from None
        config |= more_config
        topics |= more_topics
    return config, topics


def mark_of(
    config: Mapping[str, object] | None = None, topics: Mapping[str, int] | Iterable[str] = ()
) -> tuple[dict[str, object], dict[str, int]]:
    from pykafkad.testing.broker import counted

    return dict(config or {}), counted(topics)


# -- reports

WATCHED = pytest.StashKey[list["Watched"]]()  # of a test: its brokers
SHARED = pytest.StashKey["Broker"]()  # of the run: that of `kafka_broker`


def watch(node: pytest.Item, broker: Broker, *, shared: bool = False) -> None:
    """What this broker does from now on is of this test."""
    from pykafkad.testing.report import Watched

    node.stash.setdefault(WATCHED, []).append(Watched(broker, shared))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[WATCHED] = []
    broker = item.config.stash.get(SHARED, None)
    if broker is not None and "kafka_broker" in getattr(item, "fixturenames", ()):
        watch(item, broker, shared=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    watched = item.stash.get(WATCHED, [])
    if report.failed and watched:
        from pykafkad.testing.report import sections

        for each in watched:
            report.sections += sections(each)
    return report
