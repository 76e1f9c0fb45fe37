"""The template of `kafkapy jobs new`: a job, its test, and the session of the test."""
