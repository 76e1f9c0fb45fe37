"""The metadata of the cluster: the immutable image, the delta from which the next image is built, and the metadata
records."""
