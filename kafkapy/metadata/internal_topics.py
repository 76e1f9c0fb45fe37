"""The names of the internal topics, which only coordinators write, and of the metadata log, which is not a topic."""

from __future__ import annotations

GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
# The only partition of the quorum. Its id is METADATA_TOPIC_ID in kafkapy.types.
METADATA_TOPIC = "__cluster_metadata"
METADATA_PARTITION = 0
INTERNAL_TOPICS = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC})
