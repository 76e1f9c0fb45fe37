"""The read-only HTTP interface of the metrics listener, with information about logs and clients that Kafka's protocol
does not have.
"""
