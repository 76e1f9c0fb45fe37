"""The quorum of controllers: the metadata log, its replication by Kafka's Raft, and the active controller."""
