"""The controller's decisions as pure functions. Each takes an image (the state of the metadata) and an event, and
returns records for the metadata log and a response. The functions use no clock, no disk and no threads."""
