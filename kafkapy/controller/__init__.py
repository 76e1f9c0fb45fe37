"""Pure decisions: they take an image and an event, and return records and a response. No clock, no disk, no threads."""
