"""Requests from this node to other nodes of the cluster: one thread with all connections, and a channel for each
destination.

A node that is a cluster by itself does not import this package.
"""
