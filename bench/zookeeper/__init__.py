"""The comparison of `zookeeper.listener` with Apache ZooKeeper. See `bench.zookeeper.__main__`."""
