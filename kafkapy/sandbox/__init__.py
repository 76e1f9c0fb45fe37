"""A cluster on one machine, for trying out what happens when nodes fail."""
