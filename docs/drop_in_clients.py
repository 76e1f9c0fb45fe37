"""Generates docs/drop-in-clients.md: `.venv/bin/python docs/drop_in_clients.py`.

The page lists what the packages below kafkapy.compat cover of the public names of the clients that they replace. The
names are found by reflection, so each original must be installed. A name is

- a public name of a module;
- a public method, attribute, field or enumeration member of a class, counted once, where it is defined. A method is
  covered if ours accepts each of its parameters. The constants of exceptions are not counted;
- a configuration option, if the class lists its options in `DEFAULT_CONFIG`.

To add a package, add a row to PACKAGES. A name that is not covered needs a reason in its `reasons`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from kafkapy.compat.confluent_kafka._config_keys import ACCEPTED
from kafkapy.compat.confluent_kafka._config_keys import REFUSED as REFUSED_KEYS
from kafkapy.compat.kafka.configuration import REFUSED
from kafkapy.named_tuple import NamedTuple

PAGE = Path(__file__).parent / "drop-in-clients.md"
LEAST_SHARE = 0.95
_OPTIONS = "DEFAULT_CONFIG"


class Package(NamedTuple):
    """A client that a package of ours replaces.

    `modules` has the module of ours for each module of the original. `refused` has the options of all classes whose
    default is the only value that is accepted, and `reasons` the other names that are not covered, each with the
    reason; a name in `reasons` that ends with `*` stands for all that begin so. `notes` describes differences. `parts`
    are further top-level modules in which the original defines its classes. `keys` are tables of configuration keys, by
    their headings, with a reason for each key.
    """

    distribution: str
    modules: Mapping[str, str]
    refused: Mapping[str, str]
    reasons: Mapping[str, str]
    notes: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    keys: Mapping[str, Mapping[str, str]] = MappingProxyType({})

    def defines(self, module: str | None) -> bool:
        """Returns whether a module belongs to the original."""
        tops = {name.partition(".")[0] for name in self.modules} | set(self.parts)
        return module is not None and module.partition(".")[0] in tops


_REGISTRY = "kafkapy.compat.confluent_kafka.schema_registry"
_REGISTRY_MODULES = (
    *("avro", "error", "json_schema", "protobuf", "rule_registry", "schema_registry_client", "serde"),
    "wildcard_matcher",
)
_INTERNAL = "it is a part of the original's implementation, which its documentation does not name"
_NO_EXECUTORS = (
    "a program registers the executors of its rules; those of the original need libraries for CEL and JSONata, and the "
    "key services of clouds"
)

PACKAGES: tuple[Package, ...] = (
    Package(
        "kafka-python",
        {
            "kafka": "kafkapy.compat.kafka",
            "kafka.admin": "kafkapy.compat.kafka.admin",
            "kafka.structs": "kafkapy.compat.kafka.structs",
            "kafka.errors": "kafkapy.compat.kafka.errors",
        },
        REFUSED,
        {},
        (
            "Records without a key go to one partition for about a batch, then to another, as in Java's client; "
            "kafka-python chooses a partition for each record.",
            "A rebalance listener is called by the thread that calls `poll` or `close`, and so is the callback of "
            "`commit_async`; the callbacks of records are called by the networking thread or by a thread that calls a "
            "method of the producer.",
            "A consumer's method that is called while another thread is in a method of the same consumer raises "
            "IllegalStateError; `assignment` and `group_metadata` may be called by any thread.",
            "`metrics()` has the totals that kafkapy's client counts, and not all names of the original.",
            "With OAUTHBEARER, the token must be a JSON web token with the claim `exp`, because it is renewed before "
            "it expires.",
        ),
    ),
    Package(
        "confluent-kafka",
        {
            "confluent_kafka": "kafkapy.compat.confluent_kafka",
            "confluent_kafka.admin": "kafkapy.compat.confluent_kafka.admin",
            "confluent_kafka.aio": "kafkapy.compat.confluent_kafka.aio",
            "confluent_kafka.error": "kafkapy.compat.confluent_kafka.error",
            "confluent_kafka.schema_registry": _REGISTRY,
            **{f"confluent_kafka.schema_registry.{name}": f"{_REGISTRY}.{name}" for name in _REGISTRY_MODULES},
            "confluent_kafka.serialization": "kafkapy.compat.confluent_kafka.serialization",
        },
        {},
        {
            "confluent_kafka.kafkatest": "it has programs of Kafka's system tests, which are not part of the client",
            **{
                f"confluent_kafka.schema_registry.{name}": _INTERNAL
                for name in (
                    *("avro.LocalSchemaRepository*", "avro.parse_schema_with_repo", "json_schema.DEFAULT_SPEC"),
                    *(f"schema_registry_client.{name}" for name in ("full_jitter", "is_retriable", "is_success")),
                    "serde.ParsedSchemaCache*",
                )
            },
            "confluent_kafka.schema_registry.serde.default_validation_rule_executor": _NO_EXECUTORS,
            "confluent_kafka.schema_registry.protobuf.validate_message": (
                "validation rules of Protobuf are in options that only Confluent's definitions describe"
            ),
            **dict.fromkeys(
                (
                    *(
                        f"confluent_kafka.schema_registry.protobuf.{name}_to_protobuf"
                        for name in ("decimal", "variant")
                    ),
                    *(
                        f"confluent_kafka.schema_registry.protobuf.protobuf_to_{name}"
                        for name in ("decimal", "variant")
                    ),
                ),
                "it converts messages of Confluent's own definitions, which kafkapy does not contain",
            ),
            **dict.fromkeys(
                (f"confluent_kafka.schema_registry.error.{name}" for name in ("SchemaParseException", "UnknownType")),
                "it is an exception of fastavro; a schema that is not valid raises SerializationError",
            ),
        },
        notes=(
            "`produce` copies the record at once, so that its buffers can be changed afterwards.",
            "`purge` returns when the records have failed, whatever `blocking` says.",
            "Within `on_assign`, `assign` chooses the offsets; the partitions must be those that the group assigned. "
            "While topics are subscribed, `assign` is refused elsewhere.",
            "`include_authorized_operations` and `broker` of AdminClient's calls are refused with `_NOT_IMPLEMENTED`.",
            "Statistics have librdkafka's names, without the fields of its internal queues.",
            "Of `schema_registry`, the modules directly below it are counted. The packages `rules` (executors of CEL, "
            f"JSONata and encryption, and the dead letter queue) are left out: {_NO_EXECUTORS}.",
            "`url` must be an address: the registry in memory, `mock://`, does not exist.",
            "A serializer refuses a given schema with rules for writing, which confluent-kafka would skip; the rules "
            "of registered schemas are executed.",
        ),
        parts=("cimpl",),
        keys={"accepted without an effect": ACCEPTED, "refused unless it has its default": REFUSED_KEYS},
    ),
)

HEAD = """<!-- generated by docs/drop_in_clients.py; change that program or kafkapy/compat instead -->
# Drop-in clients

The packages below `kafkapy.compat` have the names, arguments, results and exceptions of other Kafka clients for Python,
and run on kafkapy's client. A program changes its imports and nothing else:

```python
import kafkapy.compat.kafka as kafka
from kafkapy.compat.kafka.admin import NewTopic
```

`kafkapy.compat.kafka08` has equivalents, in Python, of the Java clients of Apache Kafka 0.8: the producer (synchronous
and asynchronous), SimpleConsumer, and the high-level consumer with its streams. There is no ZooKeeper: the brokers are
named by `metadata.broker.list` or `bootstrap.servers`, and offsets are committed to Kafka.

An option or argument of the original that cannot be honoured raises an error that says so. The tables are made by
reflection over the installed originals. They count the public names of their modules, the methods, fields and
enumeration members of their classes, and their configuration options. A method is covered if ours accepts each of its
parameters.

"""


class Coverage(NamedTuple):
    """The names of one class, or of one module without its classes, that are covered, and those that are not."""

    title: str
    covered: tuple[str, ...]
    missing: tuple[str, ...]


def coverage(package: Package) -> list[Coverage]:
    """Returns what is covered of each module and class of a package, each class in the first module that has it."""
    found = []
    seen: set[type] = set()
    originals = [import_module(name) for name in package.modules]
    public = {value for module in originals for value in vars(module).values() if isinstance(value, type)}
    for name, ours in package.modules.items():
        original, replacement = import_module(name), import_module(ours)
        members = public_names(package, original)
        present = [each for each in members if hasattr(replacement, each)]
        found.append(Coverage(name, tuple(present), tuple(each for each in members if each not in present)))
        for each in members:
            cls = getattr(original, each, None)  # a module in `__all__` may not be imported
            if isinstance(cls, type) and cls not in seen and package.defines(cls.__module__):
                seen.add(cls)
                pairs = dict(_members(package, cls, getattr(replacement, each, None), public - {cls}))
                if pairs:
                    found.append(
                        Coverage(
                            f"{name}.{each}",
                            tuple(member for member, is_covered in pairs.items() if is_covered),
                            tuple(member for member, is_covered in pairs.items() if not is_covered),
                        )
                    )
    return found


def public_names(package: Package, module: ModuleType) -> list[str]:
    """Returns the names that a module lists in `__all__`, and the public names of the package that it has."""
    listed = list(getattr(module, "__all__", ()))
    for name, value in vars(module).items():
        if name.startswith("_") or name in listed or isinstance(value, ModuleType):
            continue
        source = getattr(value, "__module__", None)
        if isinstance(value, type) or callable(value):
            if not package.defines(source):
                continue
        elif type(value).__module__ == "__future__":
            continue
        listed.append(name)
    return sorted(listed)


def _members(package: Package, cls: type, ours: Any, others: set[type]) -> Iterator[tuple[str, bool]]:
    """Yields the public members and options of a class, and whether our class covers each.

    What the class inherits from one of `others` is not yielded.
    """
    options = {} if issubclass(cls, Enum) else getattr(cls, _OPTIONS, {})
    if issubclass(cls, Enum):
        yield from ((name, hasattr(ours, name)) for name in cls.__members__)
    yield from ((name, hasattr(ours, name)) for name in getattr(cls, "_fields", ()))
    if "__init__" in vars(cls) and not options:
        yield "()", ours is not None and accepts(ours, cls)
    for name in dir(cls):
        owner = next((each for each in cls.__mro__ if name in vars(each)), None)
        if (
            name.startswith("_")
            or (name == _OPTIONS and options)
            or owner is None
            or not package.defines(owner.__module__)
            or owner in others
            or (issubclass(cls, Enum) and name in cls.__members__)
            or name in getattr(cls, "_fields", ())
        ):
            continue
        value, replacement = getattr(cls, name), getattr(ours, name, None)
        is_method = callable(value) and not isinstance(value, type)
        if issubclass(cls, BaseException) and not is_method and not isinstance(value, property):
            continue
        yield name, hasattr(ours, name) and (not is_method or accepts(replacement, value))
    accepted = getattr(ours, _OPTIONS, {}) if options else {}
    yield from ((f"({option})", option in accepted and option not in package.refused) for option in options)


def accepts(ours: Any, original: Any) -> bool:
    """Returns whether `ours` can be called with every parameter that `original` has."""
    try:
        wanted = inspect.signature(original).parameters.values()
    except (TypeError, ValueError):  # compiled, without a signature
        return callable(ours)
    if [each.name for each in wanted] == ["self", "object"]:  # what Python 3.13 says of a compiled method instead
        return callable(ours)
    try:
        taken = inspect.signature(ours).parameters
    except (TypeError, ValueError):
        return callable(ours)
    kinds = {each.kind for each in taken.values()}
    for each in wanted:
        if each.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
            if each.kind not in kinds:
                return False
        elif each.name not in taken and inspect.Parameter.VAR_KEYWORD not in kinds and each.name != "self":
            return False
    return True


def reason_of(package: Package, name: str) -> str | None:
    """Returns the reason why a name is not covered; None if the table has none."""
    if name in package.reasons:
        return package.reasons[name]
    option = name.rpartition("(")[2].removesuffix(")")
    if name.endswith(")") and option in package.refused:
        return package.refused[option]
    starts = (each for each in package.reasons if each.endswith("*") and name.startswith(each[:-1]))
    return next((package.reasons[each] for each in starts), None)


def share(found: list[Coverage]) -> tuple[int, int]:
    """Returns the number of names that are covered, and of all names."""
    covered = sum(len(each.covered) for each in found)
    return covered, covered + sum(len(each.missing) for each in found)


def missing_names(found: list[Coverage]) -> list[str]:
    """Returns the full names of what is not covered."""
    return [
        f"{each.title}{name}" if name.startswith("(") else f"{each.title}.{name}"
        for each in found
        for name in each.missing
    ]


def drop_in_clients() -> str:
    """Returns the page for the installed originals."""
    return HEAD + "\n".join(_section(package) for package in PACKAGES)


def section_title(package: Package) -> str:
    """Returns the heading of a package's section, with the version of the original that was read."""
    return f"## {package.distribution} {version(package.distribution)}"


def _section(package: Package) -> str:
    found = coverage(package)
    covered, names = share(found)
    lines = [section_title(package), "", f"{covered} of {names} names are covered ({covered / names:.1%}).", ""]
    lines += [f"- {note}" for note in package.notes] + [""] * bool(package.notes)
    for heading, reasons in package.keys.items():
        lines += [f"| key that is {heading} | reason |", "|---|---|"]
        lines += [f"| `{key}` | {reason} |" for key, reason in reasons.items()] + [""]
    lines += ["| name | covered | names |", "|---|---|---|"]
    for each in found:
        lines.append(f"| `{each.title}` | {len(each.covered)} | {len(each.covered) + len(each.missing)} |")
    left = missing_names(found)
    if left:
        lines += ["", "| not covered | reason |", "|---|---|"]
        lines += [f"| `{name}` | {reason_of(package, name) or 'no reason given'} |" for name in left]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(drop_in_clients())
