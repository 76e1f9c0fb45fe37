"""Kafka's protocol: definitions, the generator that turns them into classes, API keys and versions."""
