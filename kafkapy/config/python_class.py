"""Loads the Python classes that the administrator names in configuration keys.

A name has the form `package.module:Class` or `package.module.Class`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from kafkapy.errors import ConfigError


def load_class(text: str) -> type:
    """Imports and returns the class that `text` names, as `package.module:Class` or `package.module.Class`.

    Raises ImportError, whose text is the reason, if `text` has another form, or the import fails, or there is no such
    class.
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


def load_class_of_key(key: str, text: str, purpose: str) -> type:
    """Returns the class that the value `text` of a key names. Raises ConfigError, which names the key.

    `purpose` is the task of the Java class that Kafka's users name in this key, such as "validate tokens". The error's
    text contains it, because kafkapy cannot run a Java class.
    """
    try:
        return load_class(text)
    except ImportError as error:
        raise ConfigError(
            f"{key}={text}: not a Python class that can be imported ({error}), and kafkapy cannot run the Java class "
            f"that would {purpose}"
        ) from None


def make_plugin(key: str, text: str, methods: Sequence[str], originals: Mapping[str, str]) -> Any:
    """Returns an instance of the class that the value `text` of a key names. Raises ConfigError, which names the key.

    The class is constructed without arguments and must have all `methods`. Its method `configure`, if it has one, is
    called with `originals`, the keys and values of the configuration file.
    """
    try:
        plugin = load_class(text)()
        missing = [method for method in methods if not callable(getattr(plugin, method, None))]
        if missing:
            raise TypeError(f"it has no method {missing[0]}")
        configure = getattr(plugin, "configure", None)
        if configure is not None:
            configure(dict(originals))
    except Exception as error:  # the class may fail in any way
        raise ConfigError(f"{key}={text}: {type(error).__name__}: {error}") from error
    return plugin
