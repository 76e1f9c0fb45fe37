"""Requests from this node to other nodes of the cluster: one thread with all connections, and a channel for each
destination.

If a node is the only one of its cluster, it does not import this package.
"""
