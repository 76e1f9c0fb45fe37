"""The metadata of the cluster.

An image is the immutable state of the metadata at one offset of the metadata log. A delta contains the changes that
metadata records make to an image; the next image is built from it.
"""
