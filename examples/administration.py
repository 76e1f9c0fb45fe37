"""Administers a cluster: creates a topic, changes its configuration and partitions, reads groups, deletes the topic."""

from __future__ import annotations

from example_support import run

from kafkapy.client import Consumer, Producer, TopicPartition
from kafkapy.client.admin import (
    EARLIEST,
    LATEST,
    Admin,
    ConfigChange,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from kafkapy.config.row import ConfigSource
from kafkapy.errors import ApiError, Error


def create(admin: Admin, topic: str) -> None:
    """Deletes the topic if an earlier run has left it, and creates it with a configuration of its own."""
    try:
        admin.delete_topics([topic]).check()
    except ApiError as error:
        if error.error is not Error.UNKNOWN_TOPIC_OR_PARTITION:
            raise
    admin.create_topics([NewTopic(topic, partitions=1, configs={"retention.ms": "3600000"})]).check()
    print(f"created {topic}")


def change(admin: Admin, topic: str) -> None:
    """Changes one key of the topic, and adds a partition."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin.incremental_alter_configs({resource: [ConfigChange("max.message.bytes", "2000000")]}).check()
    admin.create_partitions({topic: 2}).check()
    configs = admin.describe_configs([resource]).check()[resource]
    own = {name: entry.value for name, entry in sorted(configs.items()) if entry.source == ConfigSource.TOPIC}
    print(f"configuration: {own}")


def use(bootstrap: str, topic: str, group: str) -> None:
    """Writes four records and commits the first two of partition 0 in a group."""
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(4):
            producer.send(topic, str(number), partition=number % 2)
    with Consumer(bootstrap_servers=bootstrap, group_id=group) as consumer:
        consumer.commit({TopicPartition(topic, 0): 1})


def report(admin: Admin, topic: str, group: str) -> None:
    """Prints the partitions, their offsets and the lag of the group."""
    partitions = admin.describe_topics([topic]).check()[topic].partitions
    places = [TopicPartition(topic, each.partition) for each in partitions]
    starts = admin.list_offsets(dict.fromkeys(places, EARLIEST)).check()
    ends = admin.list_offsets(dict.fromkeys(places, LATEST)).check()
    committed = admin.list_group_offsets([group]).check()[group]
    for place in places:
        done = committed.get(place)
        lag = "no offset" if done is None else f"lag {ends[place].offset - done.offset}"
        print(f"partition {place.partition}: offsets {starts[place].offset} to {ends[place].offset}, {group}: {lag}")


def main(bootstrap: str, topic: str, group: str) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        cluster = admin.describe_cluster()
        print(f"{len(cluster.brokers)} brokers")
        create(admin, topic)
        change(admin, topic)
        use(bootstrap, topic, group)
        report(admin, topic, group)
        admin.delete_groups([group]).check()
        admin.delete_topics([topic]).check()
        print(f"deleted {topic}")


if __name__ == "__main__":
    run(main, __doc__, topic="example-administered", group="example-administered")
