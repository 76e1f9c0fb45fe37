"""The mechanisms of SCRAM and their limits, for clients, requests and metadata records (KIP-554)."""

from __future__ import annotations

from enum import IntEnum

# Limits of every mechanism; the lower one is the default.
MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16384


class ScramMechanism(IntEnum):
    """The SCRAM mechanisms, with the numbers that Kafka's protocol uses."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def hash_name(self) -> str:
        """The name of the mechanism's hash function in Python's hashlib."""
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"

    @property
    def digest_size(self) -> int:
        """The size of the mechanism's keys in bytes."""
        return 32 if self is ScramMechanism.SCRAM_SHA_256 else 64


MECHANISMS_BY_NUMBER = {each.value: each for each in ScramMechanism}
MECHANISMS_BY_NAME = {each.name.replace("_", "-"): each for each in ScramMechanism}
