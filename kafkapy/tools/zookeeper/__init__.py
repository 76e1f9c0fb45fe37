"""The tools that connect to ZooKeeper, or to the broker's listener for ZooKeeper's clients, and the ZooKeeper client
that these tools use."""
