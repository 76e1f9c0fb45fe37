"""Enumerations whose members are found by name too."""

from __future__ import annotations

from typing import Any


class EnumHelper:
    """A base of enumerations whose members are found by value or by name.

    A name may be in upper or lower case, and may have `-` instead of `_`.
    """

    @classmethod
    def build_from(cls, val: Any) -> Any:
        """Returns the member with this value or name. Raises ValueError if there is none."""
        if isinstance(val, cls):
            return val
        members: dict[str, Any] = cls.__members__  # type: ignore[attr-defined]
        for member in members.values():
            if not isinstance(val, bool) and member.value == val:
                return member
        member = members.get(str(val).strip().upper().replace("-", "_"))
        if member is None:
            raise ValueError(f"Unrecognized {cls.__name__}: {val}")
        return member

    @classmethod
    def value_for(cls, val: Any) -> Any:
        """Returns the value of the member with this value or name. Raises ValueError if there is none."""
        return cls.build_from(val).value
