"""The metadata of the cluster: an immutable image, the deltas that make the next one, and its records."""
