"""The tools that connect to ZooKeeper, or to the listener for ZooKeeper's clients, and their client."""
