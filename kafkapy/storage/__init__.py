"""Kafka's files on disk: log directories, logs, segments, their indexes, checkpoints and producer state."""
