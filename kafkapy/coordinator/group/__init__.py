"""The group coordinator: groups and their committed offsets, stored in `__consumer_offsets`."""
