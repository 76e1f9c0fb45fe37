"""The values of the protocol that programs use, as in kafka-python's `kafka.protocol`."""
