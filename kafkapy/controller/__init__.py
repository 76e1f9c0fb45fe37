"""The controller's decisions as pure functions. Each takes an image and an event, and returns records and a response.
They use no clock, no disk and no threads."""
