"""The base class of the assignors."""

from __future__ import annotations


class AbstractPartitionAssignor:
    """The base class of the assignors; `name` is the assignor's name in the group protocol."""

    name = ""
