"""Bytes and files without a broker: the wire format, record batches, codecs, checksums, indexes and segment files."""
