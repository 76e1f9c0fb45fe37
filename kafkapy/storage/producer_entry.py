"""Arithmetic of the sequence numbers of idempotent producers (KIP-98)."""

NO_OFFSET = -1
LARGEST_SEQUENCE = 2**31 - 1


def sequence_before(sequence: int, count: int) -> int:
    """Returns `sequence` minus `count`, which wraps from 0 to the largest sequence number."""
    return sequence - count if sequence >= count else LARGEST_SEQUENCE - (count - sequence) + 1


def follows(last_sequence: int, sequence: int) -> bool:
    """Returns whether `sequence` is the next one after `last_sequence`."""
    return sequence == last_sequence + 1 or (sequence == 0 and last_sequence == LARGEST_SEQUENCE)
