"""What stands between the request handlers and the log: partitions, their roles, and the manager of them all."""
