"""The schema registry: Confluent's HTTP API over the compacted topic `_schemas`.

It is a process of its own and a client of any cluster. It needs the libraries of the extra `registry`.
"""
