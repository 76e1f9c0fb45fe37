"""The state of logs, partitions, producers and fetch sessions, as C fields that Python and the gate share."""
