"""A cluster of several nodes on one machine, with which users can try out what happens when nodes fail."""
