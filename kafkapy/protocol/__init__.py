"""Kafka's protocol: definitions, the generator that turns them into classes, api keys and versions."""
