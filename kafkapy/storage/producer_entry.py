"""Sequence numbers of idempotent producers (KIP-98). What a log remembers of one is `_core.producer_table`."""

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_SEQUENCE = -1
NO_OFFSET = -1
LARGEST_SEQUENCE = 2**31 - 1


def sequence_before(sequence: int, count: int) -> int:
    """`sequence` minus `count`, wrapping below 0 as sequence numbers do."""
    return sequence - count if sequence >= count else LARGEST_SEQUENCE - (count - sequence) + 1


def follows(last_sequence: int, sequence: int) -> bool:
    return sequence == last_sequence + 1 or (sequence == 0 and last_sequence == LARGEST_SEQUENCE)
