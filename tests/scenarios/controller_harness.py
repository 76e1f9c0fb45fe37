"""The controller, driven by the commands of a transcript; the records of its operations become lines.

bootstrap 30|21 [no-elr]      register B [clean=E] [rack=R]    unfence B    shutdown B    fence B    unregister B
create T P [factor]           assign T R,R R,R        grow T P     delete T
config topic:T|cluster|broker:B K=V|-K|K+=V|K-=V      elect preferred|unclean T P
isr B T P R,R                 directory B T P D       producer-ids B           state T
reassign T P R,R|cancel       balance                 unclean-task
heartbeat B [offset=N] [fence] [shutdown]             sleep MS                 fence-expired
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kafkapy.controller import broker_registration as registrations
from kafkapy.controller.broker_sessions import BrokerSessions, Heartbeat
from kafkapy.controller.configs import ConfigChange, OperationType, incremental_alter_configs
from kafkapy.controller.elections import balance_leaders, elect_leaders, elect_unclean_leaders
from kafkapy.controller.partitions import AlterPartition, alter_partition, assign_directories
from kafkapy.controller.producer_ids import allocate_producer_ids
from kafkapy.controller.reassignments import alter_partition_reassignments
from kafkapy.controller.result import ControllerResult, ErrorMessage
from kafkapy.controller.topics import MorePartitions, NewTopic, create_partitions, create_topics, delete_topics
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import BROKER_RESOURCE, EMPTY_IMAGE, TOPIC_RESOURCE
from kafkapy.types import TopicPartition
from tests.harness.metadata import bootstrapped, broker_config, commit, registration, rules

SESSION_TIMEOUT_MS = 9000
SIGNS = {"+=": OperationType.APPEND, "-=": OperationType.SUBTRACT, "=": OperationType.SET}


class ControllerHarness:
    """Owns an image, which the commands change."""

    def __init__(self) -> None:
        self.image = EMPTY_IMAGE
        self.config = broker_config()
        self.rules = rules(self.config)
        self.monotonic_ms = 0
        self.sessions = BrokerSessions(EMPTY_IMAGE, SESSION_TIMEOUT_MS, 0)

    def run(self, line: str) -> list[str]:
        command, *words = line.split()
        handler: Callable[..., Any] = getattr(self, "_" + command.replace("-", "_"))
        try:
            return list(handler(*words))
        except ApiError as error:
            return [f"{error.error.name}: {error.message}"]

    def _commit(self, result: ControllerResult[Any]) -> Iterator[str]:
        names = {topic.topic_id: topic.name for topic in self.image.topics.by_name.values()}
        for message, version in result.records:
            if type(message).__name__ == "TopicRecord":
                names[message.topic_id] = message.name
            yield shown(message, version, names)
        self.image = commit(self.image, result)

    def _answers(self, result: ControllerResult[Any]) -> Iterator[str]:
        yield from self._commit(result)
        for item, answer in result.response.items():
            error = answer if isinstance(answer, ErrorMessage) else answer.error
            if error.error:
                yield f"{label(item)}: {Error(error.error).name}: {error.message}"

    def _bootstrap(self, version: str, elr: str = "elr") -> Iterator[str]:
        self.image = bootstrapped(int(version), elr=elr == "elr")
        self.sessions = BrokerSessions(self.image, SESSION_TIMEOUT_MS, self.monotonic_ms)
        yield f"metadata.version {version}, eligible leader replicas {'on' if self.image.elr_enabled else 'off'}"

    def _register(self, broker: str, *words: str) -> Iterator[str]:
        options = dict(word.split("=") for word in words)
        result = self.sessions.register(
            self.image,
            registration(int(broker), rack=options.get("rack")),
            int(options.get("clean", -1)),
            self.monotonic_ms,
        )
        yield from self._commit(result)
        yield f"broker epoch {result.response}"

    def _heartbeat(self, broker: str, *words: str) -> Iterator[str]:
        """Sends a heartbeat of a broker that knows all records, unless an offset is given."""
        options = dict(word.partition("=")[::2] for word in words)
        request = Heartbeat(
            int(broker),
            self.image.brokers[int(broker)].epoch,
            int(options.get("offset", self.image.offset - 1)),
            "fence" in options,
            "shutdown" in options,
        )
        result = self.sessions.heartbeat(self.image, request, self.monotonic_ms)
        yield from self._commit(result)
        yield " ".join(name for name, is_set in result.response._asdict().items() if is_set)

    def _sleep(self, milliseconds: str) -> Iterator[str]:
        self.monotonic_ms += int(milliseconds)
        yield from ()

    def _fence_expired(self) -> Iterator[str]:
        result = self.sessions.fence_expired(self.image, self.monotonic_ms)
        yield from self._commit(result)
        yield "there may be more" if result.response else "no session has expired"

    def _unfence(self, broker: str) -> Iterator[str]:
        return self._commit(registrations.unfence_broker(self.image, int(broker)))

    def _shutdown(self, broker: str) -> Iterator[str]:
        return self._commit(registrations.begin_controlled_shutdown(self.image, int(broker)))

    def _fence(self, broker: str) -> Iterator[str]:
        return self._commit(registrations.fence_broker(self.image, int(broker)))

    def _unregister(self, broker: str) -> Iterator[str]:
        return self._commit(registrations.unregister_broker(self.image, int(broker)))

    def _create(self, topic: str, partitions: str, factor: str = "1") -> Iterator[str]:
        new = NewTopic(topic, int(partitions), int(factor))
        return self._answers(create_topics(self.image, [new], self.rules))

    def _assign(self, topic: str, *replicas: str) -> Iterator[str]:
        new = NewTopic(topic, assignments=[(number, numbers(text)) for number, text in enumerate(replicas)])
        return self._answers(create_topics(self.image, [new], self.rules))

    def _grow(self, topic: str, count: str) -> Iterator[str]:
        return self._answers(create_partitions(self.image, [MorePartitions(topic, int(count))], self.rules))

    def _delete(self, topic: str) -> Iterator[str]:
        return self._answers(delete_topics(self.image, [self.image.topics.by_name[topic].topic_id]))

    def _config(self, resource: str, *changes: str) -> Iterator[str]:
        kind, _, name = resource.partition(":")
        key = (TOPIC_RESOURCE if kind == "topic" else BROKER_RESOURCE, name)
        parsed = [config_change(text) for text in changes]
        return self._answers(incremental_alter_configs(self.image, self.config, {key: parsed}))

    def _elect(self, kind: str, topic: str, partition: str) -> Iterator[str]:
        number = ["preferred", "unclean"].index(kind)
        wanted = TopicPartition(topic, int(partition))
        records, results = elect_leaders(self.image, number, [wanted])
        return self._answers(ControllerResult(records, {wanted: results[topic][wanted.partition]}))

    def _reassign(self, topic: str, partition: str, replicas: str) -> Iterator[str]:
        wanted = None if replicas == "cancel" else numbers(replicas)
        asked = [(TopicPartition(topic, int(partition)), wanted)]
        result = alter_partition_reassignments(self.image, asked)
        yield from self._commit(result)
        for _, error in result.response:
            if error.error:
                yield f"{Error(error.error).name}: {error.message}"

    def _balance(self) -> Iterator[str]:
        return self._commit(balance_leaders(self.image))

    def _unclean_task(self) -> Iterator[str]:
        return self._commit(elect_unclean_leaders(self.image))

    def _isr(self, broker: str, topic: str, partition: str, isr: str) -> Iterator[str]:
        found = self.image.topics.by_name[topic]
        now = found.partitions[int(partition)]
        change = AlterPartition(
            found.topic_id, int(partition), now.leader_epoch, now.partition_epoch, tuple(numbers(isr)), 0
        )
        result = alter_partition(self.image, int(broker), change)
        yield from self._commit(result)
        if result.response.error:
            yield result.response.error.name

    def _directory(self, broker: str, topic: str, partition: str, letter: str) -> Iterator[str]:
        found = {(self.image.topics.by_name[topic].topic_id, int(partition)): letter.encode() * 16}
        return self._commit(assign_directories(self.image, int(broker), found))

    def _producer_ids(self, broker: str) -> Iterator[str]:
        result = allocate_producer_ids(self.image, int(broker))
        yield from self._commit(result)
        yield f"ids from {result.response.first_producer_id}"

    def _state(self, topic: str) -> Iterator[str]:
        for number, partition in self.image.topics.by_name[topic].partitions.items():
            fields = [f"leader={partition.leader}", f"epochs={partition.leader_epoch}/{partition.partition_epoch}"]
            for name in ("replicas", "isr", "elr", "last_known_elr"):
                fields.append(f"{name}={','.join(map(str, getattr(partition, name)))}")
            for name in ("adding_replicas", "removing_replicas"):
                if getattr(partition, name):
                    fields.append(f"{name}={','.join(map(str, getattr(partition, name)))}")
            if partition.leader_recovery_state:
                fields.append("recovering")
            yield f"{topic}-{number}: " + " ".join(fields)


def numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def config_change(text: str) -> ConfigChange:
    for sign, operation in SIGNS.items():
        name, found, value = text.partition(sign)
        if found:
            return ConfigChange(name, operation, value)
    return ConfigChange(text.removeprefix("-"), OperationType.DELETE, None)


def label(item: Any) -> str:
    return str(item[1] if isinstance(item, tuple) and not isinstance(item, TopicPartition) else item)


def shown(message: Any, version: int, names: dict[bytes, str]) -> str:
    """Returns a record as one line: its type, version, and the fields that are not defaults."""
    default = type(message)()
    fields = []
    for name in type(message).FIELDS:
        value = getattr(message, name)
        if name in ("incarnation_id", "end_points", "features", "log_dirs", "unknown_tagged_fields"):
            continue
        if name == "topic_id":
            fields.append(f"topic={names.get(value, value)}")
        elif name in ("partition_id", "leader") and type(message).__name__ == "PartitionRecord":
            fields.append(f"{name}={value}")
        elif value != getattr(default, name):
            if name == "directories":
                value = [each[:1].decode("latin-1") if each[:1].isalpha() else each[0] for each in value]
            fields.append(f"{name}={value}")
    return f"  {type(message).__name__} v{version} {' '.join(fields)}".rstrip()
