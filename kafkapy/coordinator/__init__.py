"""Coordinators: state machines whose durable state is a compacted internal topic, one single writer per partition."""
