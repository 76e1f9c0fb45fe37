"""Groups of Kafka Streams applications (KIP-1071), whose tasks this broker assigns."""
