"""Client quotas: which limit applies to a client, and how long a client that exceeds it has to wait."""
