"""The controller's decisions as pure functions. Each takes an image and an event, and returns records and a response.
No clock, no disk, no threads."""
