"""Loads the Python classes that the administrator names in configuration keys.

A name has the form `package.module:Class` or `package.module.Class`.
"""

from __future__ import annotations

from importlib import import_module


def load_class(text: str) -> type:
    """Returns the class that `text` names.

    Raises ImportError with the reason: a Java name, a misspelt name, or a failed import.
    """
    module_name, separator, class_name = text.partition(":")
    if not separator:
        module_name, _, class_name = text.rpartition(".")
    if not module_name or not class_name or module_name.startswith("."):
        raise ImportError("neither package.module:Class nor package.module.Class")
    try:
        found = import_module(module_name)
    except Exception as error:  # a module may fail in any way while it is imported
        raise ImportError(f"{type(error).__name__}: {error}") from error
    named = getattr(found, class_name, None)
    if not isinstance(named, type):
        raise ImportError(f"{module_name} has no class {class_name}")
    return named
