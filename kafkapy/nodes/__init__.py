"""Requests from this node to other nodes of the cluster: one thread with all connections, and a channel for each
destination. Imported only by nodes of a cluster with other nodes."""
