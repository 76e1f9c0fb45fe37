"""`kafka-consumer-groups --zookeeper`: the groups of consumers that use ZooKeeper, with the output of Kafka 0.10.1."""

from __future__ import annotations

from kafkapy.client.admin import Admin
from kafkapy.tools.option import Arguments, UsageError
from kafkapy.tools.zookeeper.brokers import connected, servers_in_zookeeper
from kafkapy.tools.zookeeper.errors import NO_NODE, ZooKeeperRequestError
from kafkapy.tools.zookeeper.old_groups import OldGroups

_ACTIONS = ("list", "describe", "delete")
_GROUP_ROW = "{:<30} {:<30} {:<10} {:<15} {:<15} {:<15} {}"
_COLUMNS = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "OWNER")


def check(arguments: Arguments) -> str:
    """Returns the action that the flags name: "list", "describe" or "delete".

    Raises UsageError for flags that contradict each other.
    """
    if arguments.has("bootstrap-server"):
        raise UsageError("Option [bootstrap-server] is not valid with [zookeeper].")
    given = [action for action in _ACTIONS if arguments.has(action)]
    if len(given) != 1:
        raise UsageError("Command must include exactly one action with [zookeeper]: --list, --describe, --delete")
    allowed = {given[0], "zookeeper", "group", "topic", "command-config", "timeout"}
    for name in arguments.given:
        if name not in allowed:
            raise UsageError(f"Option [{name}] is not valid with [zookeeper].")
    action = given[0]
    if action == "describe":
        arguments.require("group")
    if action == "delete" and not arguments.has("group") and not arguments.has("topic"):
        raise UsageError("Option [delete] either takes [group], [topic], or both")
    return action


def run(arguments: Arguments) -> bool:
    """Carries out --list, --describe or --delete; returns False if a group could not be deleted, otherwise True.

    Raises ToolError if ZooKeeper fails, and UsageError for flags that contradict each other.
    """
    action = check(arguments)
    connect_string = arguments["zookeeper"]
    with_groups = connected(connect_string)
    try:
        groups = OldGroups(with_groups)
        if action == "list":
            for name in groups.names():
                print(name)
            return True
        if action == "delete":
            return _delete(groups, arguments)
        with Admin(bootstrap_servers=servers_in_zookeeper(connect_string)) as admin:
            for group in arguments.values("group"):
                _describe(groups, admin, group)
        return True
    finally:
        with_groups.close()


def _describe(groups: OldGroups, admin: Admin, group: str) -> None:
    topics = groups.topics(group)
    if not topics:
        print("No topic available for consumer group provided")
    print(_GROUP_ROW.format(*_COLUMNS))
    for topic in topics:
        rows = groups.owned(admin, group, [topic])
        for each in rows:
            if each.offset is None:
                what = f"group {group} partition [{topic},{each.partition}]"
                print(f"Could not fetch offset from zookeeper for {what} due to missing offset data in zookeeper.")
        for each in rows:
            print(_GROUP_ROW.format(group, topic, each.partition, *each.texts, each.owner))


def _delete(groups: OldGroups, arguments: Arguments) -> bool:
    topics = arguments.values("topic")
    if not arguments.has("group"):
        for topic in topics:
            for group in groups.names():
                if any(topic == found for found, _, _ in groups.offsets(group)):
                    groups.delete_topic(group, topic)
            what = f"for all inactive consumer groups for topic {topic}"
            print(f"Deleted consumer group information {what} in zookeeper.")
        return True
    outcomes = []
    for group in arguments.values("group"):
        outcomes += (
            [_delete_topic(groups, group, topic) for topic in topics] if topics else [_delete_group(groups, group)]
        )
    return all(outcomes)


def _delete_group(groups: OldGroups, group: str) -> bool:
    try:
        is_deleted = groups.delete(group)
    except ZooKeeperRequestError as error:
        if error.code != NO_NODE:
            raise
        print(f"Delete for group {group} failed because group does not exist.")
        return False
    if is_deleted:
        print(f"Deleted all consumer group information for group {group} in zookeeper.")
    else:
        print(f"Delete for group {group} failed because its consumers are still active.")
    return is_deleted


def _delete_topic(groups: OldGroups, group: str, topic: str) -> bool:
    is_deleted = groups.delete_topic(group, topic)
    if is_deleted:
        print(f"Deleted consumer group information for group {group} topic {topic} in zookeeper.")
    else:
        print(f"Delete for group {group} topic {topic} failed because its consumers are still active.")
    return is_deleted
