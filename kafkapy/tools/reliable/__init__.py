"""The services of the reliability patterns (`kafkapy.client.reliable`), one command each."""
