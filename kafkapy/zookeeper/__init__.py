"""A listener that speaks ZooKeeper's client protocol, and the tree of znodes that it serves."""
