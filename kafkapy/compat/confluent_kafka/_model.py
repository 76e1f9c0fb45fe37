"""The small value classes of confluent-kafka that several of its modules share."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Any, TypeVar

from kafkapy.compat.confluent_kafka import _constants as numbers
from kafkapy.compat.confluent_kafka._records import TopicPartition

E = TypeVar("E", bound=Enum)


class OrderedEnum(Enum):
    """An enumeration whose members are ordered by their values."""

    def __lt__(self, other: object) -> bool:
        return self.value < other.value if isinstance(other, type(self)) else NotImplemented


def to_enum(value: Any, kind: type[E]) -> E:
    """Converts `value` to a member of the enumeration `kind`.

    `value` is a member, the number of one, or its name in upper or lower case. Raises ValueError for an unknown name or
    number, and TypeError for a value of another type.
    """
    if isinstance(value, kind):
        return value
    if isinstance(value, str):
        try:
            return kind[value.upper()]
        except KeyError:
            raise ValueError(f'Unknown value "{value}": should be a {kind.__name__}') from None
    if isinstance(value, int):
        return kind(value)
    raise TypeError(f'Unknown value "{value}": should be a {kind.__name__}')


class Node:
    """A broker: its id, address and rack."""

    def __init__(self, id: int, host: str, port: int, rack: str | None = None) -> None:
        self.id = id
        self.id_string = str(id)
        self.host = host
        self.port = port
        self.rack = rack

    def __str__(self) -> str:
        rack = f"(Rack - {self.rack})" if self.rack else ""
        return f"({self.id}) {self.host}:{self.port} {rack}"


class ConsumerGroupTopicPartitions:
    """A group, and the partitions whose committed offsets are listed or altered."""

    def __init__(self, group_id: str, topic_partitions: list[TopicPartition] | None = None) -> None:
        self.group_id = group_id
        self.topic_partitions = topic_partitions


class ConsumerGroupState(OrderedEnum):
    """The states of a consumer group."""

    UNKNOWN = numbers.CONSUMER_GROUP_STATE_UNKNOWN
    UNKOWN = UNKNOWN  # the original has this misspelt name too
    PREPARING_REBALANCING = numbers.CONSUMER_GROUP_STATE_PREPARING_REBALANCE
    COMPLETING_REBALANCING = numbers.CONSUMER_GROUP_STATE_COMPLETING_REBALANCE
    STABLE = numbers.CONSUMER_GROUP_STATE_STABLE
    DEAD = numbers.CONSUMER_GROUP_STATE_DEAD
    EMPTY = numbers.CONSUMER_GROUP_STATE_EMPTY


class ConsumerGroupType(OrderedEnum):
    """The protocols of a consumer group."""

    UNKNOWN = numbers.CONSUMER_GROUP_TYPE_UNKNOWN
    CONSUMER = numbers.CONSUMER_GROUP_TYPE_CONSUMER
    CLASSIC = numbers.CONSUMER_GROUP_TYPE_CLASSIC


class TopicCollection:
    """The topics that an operation is about, by their names."""

    def __init__(self, topic_names: list[str]) -> None:
        self.topic_names = topic_names


class TopicPartitionInfo:
    """A partition of a topic: its leader, replicas and in-sync replicas."""

    def __init__(self, id: int, leader: Node | None, replicas: list[Node], isr: list[Node]) -> None:
        self.id = id
        self.leader = leader
        self.replicas = replicas
        self.isr = isr


class IsolationLevel(OrderedEnum):
    """The visibility of the records of open and aborted transactions."""

    READ_UNCOMMITTED = numbers.ISOLATION_LEVEL_READ_UNCOMMITTED
    READ_COMMITTED = numbers.ISOLATION_LEVEL_READ_COMMITTED


class ElectionType(OrderedEnum):
    """The kinds of elections of a partition's leader."""

    PREFERRED = numbers.ELECTION_TYPE_PREFERRED
    UNCLEAN = numbers.ELECTION_TYPE_UNCLEAN


class AcknowledgeType(IntEnum):
    """The outcomes of a record in a share consumer: processed, to be delivered again, or not to be delivered again."""

    ACCEPT = numbers.SHARE_ACKNOWLEDGE_TYPE_ACCEPT
    RELEASE = numbers.SHARE_ACKNOWLEDGE_TYPE_RELEASE
    REJECT = numbers.SHARE_ACKNOWLEDGE_TYPE_REJECT


class ThrottleEvent:
    """A broker's delay of a response, which `throttle_cb` receives; `throttle_time` is in seconds."""

    def __init__(self, broker_name: str, broker_id: int, throttle_time: float) -> None:
        self.broker_name = broker_name
        self.broker_id = broker_id
        self.throttle_time = throttle_time

    def __str__(self) -> str:
        return f"{self.broker_name}/{self.broker_id} throttled for {int(self.throttle_time * 1000)} ms"
