"""`NamedTuple`: the class of typing, but ten times as fast to define.

A start of the broker defines more than a hundred of these classes. The class of typing compiles the annotations and
the constructor of each of them; here a constructor is compiled at its first call, and annotations are left to type
checkers. Instances are as fast as those of typing, and behave alike.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Generic

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from collections import namedtuple

    # The C descriptor that reads an element of a tuple.
    _Field = type(namedtuple("_Sample", ("field",)).field)

    class _Base(tuple):
        """The methods that all named tuples share."""

        __slots__ = ()
        _fields: tuple[str, ...] = ()
        _field_defaults: dict[str, Any] = {}

        @classmethod
        def _make(cls, values):
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **changes):
            made = self._make(map(changes.pop, self._fields, self))
            if changes:
                refusal = TypeError if sys.version_info >= (3, 13) else ValueError  # as in Python's own class
                raise refusal(f"Got unexpected field names: {list(changes)!r}")
            return made

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __getnewargs__(self):
            return tuple(self)

        def __repr__(self):
            fields = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({fields})"

    def _compile_constructor(owner):
        """Returns the `__new__` of a class, whose parameters are the fields."""
        fields = "".join(f"{name}, " for name in owner._fields)
        text = f"lambda _class, {fields}: _new(_class, ({fields}))"
        constructor = eval(text, {"_new": tuple.__new__, "__builtins__": {}})  # the text consists of identifiers
        constructor.__defaults__ = tuple(owner._field_defaults.values())
        constructor.__qualname__ = f"{owner.__qualname__}.__new__"
        return constructor

    class _Meta(type):
        def __new__(cls, name, bases, namespace):
            """Returns a subclass of tuple with a descriptor for each annotated field."""
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = tuple(namespace.get("__annotations__", ()))
            defaults = {field: namespace.pop(field) for field in fields if field in namespace}
            if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                raise TypeError(f"a field of {name} without a default follows one with a default")

            def construct(cls, *values, **named):
                owner.__new__ = constructor = _compile_constructor(owner)
                return constructor(cls, *values, **named)

            owner = type(
                name,
                (_Base, *(base for base in bases if base is Generic)),
                {
                    "__new__": construct,
                    **namespace,
                    **{field: _Field(number, "") for number, field in enumerate(fields)},
                    "__slots__": (),
                    "__match_args__": fields,
                    "_fields": fields,
                    "_field_defaults": defaults,
                },
            )
            return owner

    class NamedTuple(metaclass=_Meta):
        """The base in `class Point(NamedTuple)`, a subclass of tuple that does not derive from NamedTuple."""
