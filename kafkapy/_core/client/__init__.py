"""The client's hot path: batches being filled, fetched batches, records as Arrow columns, and the socket."""
