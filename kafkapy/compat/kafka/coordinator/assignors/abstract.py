"""The base class of the assignors."""

from __future__ import annotations


class AbstractPartitionAssignor:
    """The base class of the assignors; `name` is that in the protocol."""

    name = ""
