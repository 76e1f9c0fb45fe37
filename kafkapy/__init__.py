"""kafkapy: a message broker that speaks Apache Kafka's protocol and stores Kafka's files."""

__version__ = "0.1.0"
