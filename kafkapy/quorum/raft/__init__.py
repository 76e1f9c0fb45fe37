"""Kafka's Raft as a pure state machine (KIP-595, KIP-630, KIP-853, KIP-996): messages and times in, effects out."""
