"""The state of logs, partitions, producers and fetch sessions, as C fields that Python and the gate share.

The gate is the compiled code that serves usual Produce and Fetch requests without the interpreter lock (`_core/gate`).
"""
