"""The compiled part of the client: batches being filled, fetched batches, records as Arrow columns, and the socket.
"""
