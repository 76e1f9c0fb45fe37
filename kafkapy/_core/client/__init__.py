"""The compiled part of the client: batches to send, fetched batches, records as Arrow columns, and the socket."""
