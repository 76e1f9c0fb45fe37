"""Share partitions (KIP-932), at the leader of the partition: the records that a share group has in flight."""
