"""Coordinators: state machines whose state is a compacted internal topic with a single writer for each partition."""
