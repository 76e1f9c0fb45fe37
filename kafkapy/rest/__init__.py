"""The REST proxy: Confluent's HTTP interfaces for producers, consumers and administration, versions 2 and 3.

It is a process of its own and a client of any cluster. It needs the libraries of the extra `rest`.
"""
