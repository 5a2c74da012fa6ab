"""DescribeConfigs (key 32), versions 1 to 4: the configs of topics, brokers, groups, client metrics subscriptions, and
the levels of the broker's loggers (KIP-133, KIP-226, KIP-412, KIP-569, KIP-848).

Types and documentation are added in version 3. Each resource is answered by itself, in the order of the request.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.messages import DescribeConfigsResponse
from pykafkad.pure.authorization import DESCRIBE_CONFIGS, LAST, on_configs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from pykafkad.cluster.config_descriptions import Describer, Description
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.handlers.permits import Permits
    from pykafkad.messages import DescribeConfigsRequest
    from pykafkad.slices import Work

    Resource = DescribeConfigsRequest.DescribeConfigsResource


Result = DescribeConfigsResponse.DescribeConfigsResult
Entry = DescribeConfigsResponse.DescribeConfigsResourceResult
Synonym = DescribeConfigsResponse.DescribeConfigsSynonym

DOCUMENTATION_SINCE = 3
FAILURES_A_TIME = 64
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


needs = on_configs(DESCRIBE_CONFIGS, LAST)


def handle(
    broker: Broker, request: DescribeConfigsRequest, context: Context
) -> Work[DescribeConfigsResponse]:
    with_documentation = request.include_documentation and context.version >= DOCUMENTATION_SINCE
    if is_malformed(request):
        return all_malformed(request.resources)
    return described(broker, request.resources, request.include_synonyms, with_documentation)


def is_malformed(request: DescribeConfigsRequest) -> bool:
    return any(resource.resource_type not in DESCRIBED for resource in request.resources)


def said_first(
    broker: Broker, request: DescribeConfigsRequest, context: Context, permits: Permits
) -> Work[DescribeConfigsResponse | None]:
    yield
    return (yield from all_malformed(request.resources)) if is_malformed(request) else None


def all_malformed(resources: Sequence[Resource]) -> Work[DescribeConfigsResponse]:
    """If one resource is of an unknown type, none of them is answered."""
    results = []
    for number, resource in enumerate(resources):
        results.append(failed(resource, KafkaError(errors.INVALID_REQUEST)))
        if number % FAILURES_A_TIME == 0:
            yield
    return DescribeConfigsResponse(results=results)


def described(
    broker: Broker, resources: Sequence[Resource], with_synonyms: bool, with_documentation: bool
) -> Work[DescribeConfigsResponse]:
    """A resource that is asked for again, with the same keys, gets the same object as its answer."""
    from pykafkad.cluster.config_descriptions import Describer

    describer = Describer(broker.config, broker.controller.dynamic)
    results = []
    known: dict[tuple[int, str, tuple[str, ...] | None], Result] = {}
    for resource in resources:
        keys = resource.configuration_keys
        asked = resource.resource_type, resource.resource_name, None if keys is None else tuple(keys)
        answer = known.get(asked)
        if answer is None:
            answer = yield from result(broker, describer, resource, with_synonyms, with_documentation)
            known[asked] = answer
        results.append(answer)
        yield
    return DescribeConfigsResponse(results=results)


def failed(resource: Resource, error: KafkaError) -> Result:
    return Result(
        error_code=error.code,
        error_message=error.text,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def result(
    broker: Broker, describer: Describer, resource: Resource, with_synonyms: bool, with_documentation: bool
) -> Work[Result]:
    find: Callable[[Broker, Describer, Resource], Iterable[Any]] = DESCRIBED[resource.resource_type]
    try:
        found = find(broker, describer, resource)
    except KafkaError as error:
        return failed(resource, error)
    answer = Result(
        error_message="", resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    configs = []
    for each in found:
        if resource.resource_type != BROKER_LOGGER:
            each = entry(each, resource.resource_type, with_synonyms, with_documentation)
        configs.append(each)
        yield
    answer.configs = configs
    return answer


def entry(described: Description, resource_type: int, with_synonyms: bool, with_documentation: bool) -> Entry:
    return Entry(
        name=described.name,
        value=described.value,
        read_only=described.is_read_only,
        config_source=described.source,
        is_sensitive=described.is_sensitive,
        synonyms=[
            Synonym(name=name, value=value, source=source) for name, value, source in described.synonyms
        ]
        if with_synonyms
        else [],
        config_type=described.type,
        documentation=documentation(resource_type, described.name) if with_documentation else None,
    )


def documentation(resource_type: int, name: str) -> str | None:
    from pykafkad import config_docs
    from pykafkad.cluster.config_descriptions import synonyms_of

    if resource_type == BROKER:
        return next(
            (config_docs.BROKER[each] for each in synonyms_of(name) if each in config_docs.BROKER), None
        )
    texts = {TOPIC: config_docs.TOPIC, CLIENT_METRICS: config_docs.CLIENT_METRICS, GROUP: config_docs.GROUP}
    return texts[resource_type].get(name)


# -- one type of resource each


def of_topic(broker: Broker, describer: Describer, resource: Resource) -> Iterable[Description]:
    from pykafkad.cluster import topic_names

    name = resource.resource_name
    problem = topic_names.why_invalid(name)
    if problem is not None:
        raise KafkaError(errors.INVALID_TOPIC_EXCEPTION, problem)
    topic = broker.image.topics.get(name)
    if topic is None:
        raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, "")
    config = broker.controller.topic_config(name)
    return describer.topic(config.overrides, resource.configuration_keys)


def of_broker(broker: Broker, describer: Describer, resource: Resource) -> Iterable[Description]:
    from pykafkad.cluster.config_rules import node_number

    name = resource.resource_name
    if not name:
        return describer.all_brokers(resource.configuration_keys)
    if node_number(name, "Broker") != broker.node_id:
        why = f"Unexpected broker id, expected {broker.node_id} or empty string, but received {name}"
        raise KafkaError(errors.INVALID_REQUEST, why)
    return describer.broker(resource.configuration_keys)


def of_loggers(broker: Broker, describer: Describer, resource: Resource) -> list[Entry]:
    from pykafkad import logs
    from pykafkad.cluster.config_descriptions import DYNAMIC_BROKER_LOGGER_CONFIG, chosen
    from pykafkad.cluster.config_rules import node_number

    name = resource.resource_name
    if not name:
        raise KafkaError(errors.INVALID_REQUEST, "Broker id must not be empty")
    if node_number(name, "Broker") != broker.node_id:
        why = f"Unexpected broker id, expected {broker.node_id} but received {name}"
        raise KafkaError(errors.INVALID_REQUEST, why)
    levels = logs.levels()
    return [
        Entry(name=each, value=levels[each], config_source=DYNAMIC_BROKER_LOGGER_CONFIG, documentation="")
        for each in chosen(levels, resource.configuration_keys)
    ]


def of_client_metrics(broker: Broker, describer: Describer, resource: Resource) -> Iterable[Description]:
    name = resource.resource_name
    if not name:
        raise KafkaError(errors.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    own = dict(broker.image.configs.get((CLIENT_METRICS, name), {}))
    return describer.client_metrics(own, resource.configuration_keys)


def of_group(broker: Broker, describer: Describer, resource: Resource) -> Iterable[Description]:
    name = resource.resource_name
    if not name:
        raise KafkaError(errors.INVALID_REQUEST, "Group name must not be empty")
    own = dict(broker.image.configs.get((GROUP, name), {}))
    return describer.group(own, resource.configuration_keys)


DESCRIBED = {
    TOPIC: of_topic,
    BROKER: of_broker,
    BROKER_LOGGER: of_loggers,
    CLIENT_METRICS: of_client_metrics,
    GROUP: of_group,
}
