"""The group coordinator: membership of classic groups and committed offsets, kept in `__consumer_offsets`."""
