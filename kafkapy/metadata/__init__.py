"""The metadata of the cluster: the immutable image, the delta that makes the next image, and the records of both."""
