"""The assignors of consumer groups, as in kafka-python's `kafka.coordinator`."""
