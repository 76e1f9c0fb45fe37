"""The read-only HTTP interface of the metrics listener: what Kafka's protocol cannot tell about logs and clients."""
