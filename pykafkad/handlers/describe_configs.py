"""DescribeConfigs (key 32), versions 1 to 4: the configs of topics, brokers, groups, client metrics subscriptions, and
the levels of the broker's loggers (KIP-133, KIP-226, KIP-412, KIP-569, KIP-848).

Types and documentation come with version 3. Resources are answered each for itself, in the order asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.messages import DescribeConfigsResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.cluster.config_descriptions import Describer, Description
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


Result = DescribeConfigsResponse.DescribeConfigsResult
Entry = DescribeConfigsResponse.DescribeConfigsResourceResult
Synonym = DescribeConfigsResponse.DescribeConfigsSynonym

DOCUMENTATION_SINCE = 3
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def handle(broker: Broker, request: Any, context: Context) -> Any:
    from pykafkad.cluster.config_descriptions import Describer

    describer = Describer(broker.config, broker.controller.dynamic)
    with_documentation = request.include_documentation and context.version >= DOCUMENTATION_SINCE
    if any(resource.resource_type not in DESCRIBED for resource in request.resources):
        return DescribeConfigsResponse(results=[malformed(resource) for resource in request.resources])
    return DescribeConfigsResponse(
        results=[
            result(broker, describer, resource, request.include_synonyms, with_documentation)
            for resource in request.resources
        ]
    )


def malformed(resource: Any) -> Any:
    """Of a request for a resource of an unknown kind, nothing is answered."""
    error = KafkaError(errors.INVALID_REQUEST)
    return failed(resource, error)


def failed(resource: Any, error: KafkaError) -> Any:
    return Result(
        error_code=error.code,
        error_message=error.text,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def result(
    broker: Broker, describer: Describer, resource: Any, with_synonyms: bool, with_documentation: bool
) -> Any:
    found: Any
    try:
        found = DESCRIBED[resource.resource_type](broker, describer, resource)
    except KafkaError as error:
        return failed(resource, error)
    answer = Result(
        error_message="", resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    if resource.resource_type == BROKER_LOGGER:
        answer.configs = found
    else:
        answer.configs = [
            entry(each, resource.resource_type, with_synonyms, with_documentation) for each in found
        ]
    return answer


def entry(described: Description, resource_type: int, with_synonyms: bool, with_documentation: bool) -> Any:
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


# -- one kind of resource each


def of_topic(broker: Broker, describer: Describer, resource: Any) -> Iterable[Description]:
    from pykafkad.cluster import topic_names

    name = resource.resource_name
    problem = topic_names.why_invalid(name)
    if problem is not None:
        raise KafkaError(errors.INVALID_TOPIC_EXCEPTION, problem)
    topic = broker.image.topics.get(name)
    if topic is None:
        raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, "")
    config = broker.controller.topic_config(name)
    return describer.topic(config, topic.configs, resource.configuration_keys)


def of_broker(broker: Broker, describer: Describer, resource: Any) -> Iterable[Description]:
    name = resource.resource_name
    if not name:
        return describer.all_brokers(resource.configuration_keys)
    if broker_number(name) != broker.node_id:
        why = f"Unexpected broker id, expected {broker.node_id} or empty string, but received {name}"
        raise KafkaError(errors.INVALID_REQUEST, why)
    return describer.broker(resource.configuration_keys)


def of_loggers(broker: Broker, describer: Describer, resource: Any) -> list[Any]:
    from pykafkad import logs
    from pykafkad.cluster.config_descriptions import DYNAMIC_BROKER_LOGGER_CONFIG, chosen

    name = resource.resource_name
    if not name:
        raise KafkaError(errors.INVALID_REQUEST, "Broker id must not be empty")
    if broker_number(name) != broker.node_id:
        why = f"Unexpected broker id, expected {broker.node_id} but received {name}"
        raise KafkaError(errors.INVALID_REQUEST, why)
    levels = logs.levels()
    return [
        Entry(name=each, value=levels[each], config_source=DYNAMIC_BROKER_LOGGER_CONFIG, documentation="")
        for each in chosen(levels, resource.configuration_keys)
    ]


def of_client_metrics(broker: Broker, describer: Describer, resource: Any) -> Iterable[Description]:
    name = resource.resource_name
    if not name:
        raise KafkaError(errors.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    own = broker.image.configs.get((CLIENT_METRICS, name), {})
    return describer.client_metrics(own, resource.configuration_keys)


def of_group(broker: Broker, describer: Describer, resource: Any) -> Iterable[Description]:
    name = resource.resource_name
    if not name:
        raise KafkaError(errors.INVALID_REQUEST, "Group name must not be empty")
    own = broker.image.configs.get((GROUP, name), {})
    return describer.group(own, resource.configuration_keys)


def broker_number(name: str) -> int:
    digits = name[1:] if name[:1] in ("+", "-") else name
    if digits.isdecimal() and -(2**31) <= int(name) < 2**31:
        return int(name)
    raise KafkaError(errors.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")


DESCRIBED = {
    TOPIC: of_topic,
    BROKER: of_broker,
    BROKER_LOGGER: of_loggers,
    CLIENT_METRICS: of_client_metrics,
    GROUP: of_group,
}
