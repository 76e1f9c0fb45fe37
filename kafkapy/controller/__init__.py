"""Pure decisions: an image and an event in, records and an answer out. No clock, no disk, no threads."""
