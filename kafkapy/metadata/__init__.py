"""What every broker knows of the cluster: an immutable image, the deltas that make the next one, and its records."""
