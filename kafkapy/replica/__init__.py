"""Partitions, their roles, and the replica manager, between the request handlers and the logs."""
