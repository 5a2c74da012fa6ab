"""Topics and partitions come, by their znodes, whoever wrote them."""

from __future__ import annotations

from pykafkad.pure.controller.intents import Note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pykafkad.pure.controller.facts import Partition
    from pykafkad.pure.controller.intents import Steps
    from pykafkad.pure.controller.store import TopicNode
    from pykafkad.pure.controller.term import Term


class Topics:
    def __init__(self, term: Term) -> None:
        self._term, self._context = term, term.context

    def load(self) -> Steps[None]:
        """At the start of a term."""
        names = yield from self._term.store.topics()
        nodes = yield from self._term.store.topic_nodes(names)
        yield from self._add(nodes)
        context = self._context
        states = yield from self._term.store.states(list(context.partitions()))
        for partition, leadership in states.items():
            context.lead(partition, leadership)

    def changed(self) -> Steps[None]:
        found = yield from self._term.store.topics()
        known = self._context.topics
        new = [each for each in found if each not in known]
        for name in known.keys() - set(found):
            yield Note(f"the topic {name} is gone")
            self._context.remove_topic(name)
        if new:
            nodes = yield from self._term.store.topic_nodes(new)
            created = yield from self._add(nodes)
            yield from self._create(created)

    def modified(self, topic: str) -> Steps[None]:
        """It may have more partitions than before; anything else of it is the controller's own to write."""
        nodes = yield from self._term.store.topic_nodes([topic])
        known = self._context.topics.get(topic)
        if known is None or topic not in nodes:
            return
        added = {
            index: each for index, each in nodes[topic].assignments.items() if index not in known.assignments
        }
        if not added:
            return
        if topic in self._context.deleting:
            yield Note(f"no partitions are added to {topic}, which is being deleted", is_warning=True)
            yield from self._term.store.write_topic(topic, known.id, known.assignments, only_these=True)
            return
        known.assignments.update(added)
        yield from self._create([(topic, index) for index in sorted(added)])

    def _add(self, nodes: Mapping[str, TopicNode]) -> Steps[list[Partition]]:
        context = self._context
        added: list[Partition] = []
        for name, node in nodes.items():
            topic_id = node.id
            if topic_id is None:  # made by brokers before 2.8
                topic_id = self._term.store.new_topic_id()
                yield from self._term.store.write_topic(name, topic_id, node.assignments)
            topic = context.add_topic(name, topic_id)
            topic.assignments.update(sorted(node.assignments.items()))
            for index, assignment in topic.assignments.items():
                added.append((name, index))
                if assignment.is_reassigned:
                    context.reassigning[name, index] = None
        yield
        return added

    def _create(self, partitions: Sequence[Partition]) -> Steps[None]:
        term, context = self._term, self._context
        yield Note(f"{len(partitions)} partitions are new")
        replicas = [(each, replica) for each in partitions for replica in context.assignment(each).replicas]
        yield from term.partitions.create(partitions)
        yield from term.replicas.create(replicas)
        yield from term.partitions.elect(partitions)
        yield from term.replicas.bring_online(replicas)
