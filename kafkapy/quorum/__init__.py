"""Who is controller, and where cluster state is kept: one voter, Kafka's metadata log."""
