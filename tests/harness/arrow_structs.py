"""Tables whose structs of Arrow's C data interface are changed before a reader receives them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pyarrow


class Schema(ctypes.Structure):
    """The struct ArrowSchema."""


class Array(ctypes.Structure):
    """The struct ArrowArray."""


Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class ChangedBatch:
    """A pyarrow.RecordBatch that `change(schema, array)` changes when it is exported.

    The release of a struct restores the numbers of children first, because pyarrow relies on them.
    """

    def __init__(self, batch: pyarrow.RecordBatch, change: Callable[[Schema, Array], object]) -> None:
        self._batch = batch
        self._change = change
        self._kept_alive: list[object] = []

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        capsules: tuple[Any, Any] = self._batch.__arrow_c_array__()
        schema = Schema.from_address(_pointer_of(capsules[0], b"arrow_schema"))
        array = Array.from_address(_pointer_of(capsules[1], b"arrow_array"))
        self._restore_before_release(schema)
        self._restore_before_release(array)
        self._change(schema, array)
        return capsules

    def _restore_before_release(self, struct: Any) -> None:
        kind, original, children = type(struct), struct.release, struct.n_children
        inner = [(each, each.n_children) for each in _descendants(struct)]

        def release(address: int) -> None:
            for each, count in inner:
                each.n_children = count
            moved = kind.from_address(address)
            moved.n_children, moved.release = children, original
            _Release(original)(address)

        callback = _Release(release)
        self._kept_alive.append(callback)
        struct.release = ctypes.cast(callback, ctypes.c_void_p).value


def _descendants(struct: Any) -> list[Any]:
    children = [struct.children[index].contents for index in range(struct.n_children)]
    return children + [below for each in children for below in _descendants(each)]


def release(struct: Any) -> None:
    """Releases a Schema or an Array."""
    _Release(struct.release)(ctypes.addressof(struct))


def child(struct: Any, *path: int) -> Any:
    """Returns a column of a Schema or an Array, or a child of a column."""
    for index in path:
        struct = struct.children[index].contents
    return struct


def set_number(array: Array, buffer: int, index: int, number: int, kind: type = ctypes.c_int32) -> None:
    """Sets a number in a buffer of an array; the buffer must be writable."""
    ctypes.cast(array.buffers[buffer], ctypes.POINTER(kind))[index] = number
