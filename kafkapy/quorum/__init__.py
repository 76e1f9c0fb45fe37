"""The quorum: one voter, which is the controller and stores the cluster state in Kafka's metadata log."""
