"""The names of the internal topics, which only coordinators write."""

from __future__ import annotations

GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
# The nodes and sessions of the listener for ZooKeeper's clients; Apache Kafka has no such topic.
ZOOKEEPER_TREE_TOPIC = "__zookeeper_tree"
INTERNAL_TOPICS = frozenset(
    {GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC, ZOOKEEPER_TREE_TOPIC}
)
