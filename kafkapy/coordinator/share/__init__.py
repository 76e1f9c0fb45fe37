"""The share coordinator: the stored state of share partitions, in `__share_group_state`."""
