"""The common workloads of Trogdor, Apache Kafka's test framework, run from their specification files."""
