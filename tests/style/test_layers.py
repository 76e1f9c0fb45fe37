"""Every import and cimport follows the table of layers in docs/architecture.md."""

from __future__ import annotations

import re

import pytest

from tests.style.sources import PACKAGE, ROOT, imports, module_name, package_sources

TABLE = re.compile(r"```layers\n(.*?)```", re.DOTALL)


def allowed_imports() -> dict[str, set[str]]:
    """Returns the layers that each layer may import, including itself.

    A line of the table is `layer, layer` (they may import every layer of the lines above) or `layer: layer, ...` (it
    may import the listed ones only).
    """
    found = TABLE.search((ROOT / "docs" / "architecture.md").read_text())
    assert found, "docs/architecture.md holds no ```layers block"
    allowed: dict[str, set[str]] = {}
    above: set[str] = set()
    for line in found[1].splitlines():
        names, has_list, listed = (part.strip() for part in line.partition(":"))
        layers = [name.strip() for name in names.split(",") if name.strip()]
        for layer in layers:
            allowed[layer] = {layer} | ({name.strip() for name in listed.split(",")} if has_list else above)
        above = above | set(layers)
    return allowed


ALLOWED = allowed_imports()
# These files hold a docstring and a version, and belong to no layer.
ROOTS = (PACKAGE / "__init__.py", PACKAGE / "_core" / "__init__.py")


def layer_of(module: str) -> str:
    """Returns the first name below `kafkapy`; below `_core`, whose packages are layers of their own, the first two."""
    names = module.split(".")[1:]
    return ".".join(names[: 2 if names[:1] == ["_core"] else 1]) or module


def test_every_package_has_its_layer():
    found = {layer_of(module_name(path)) for path in package_sources() if path not in ROOTS}
    assert found <= set(ALLOWED), f"not in the table of docs/architecture.md: {sorted(found - set(ALLOWED))}"


@pytest.mark.parametrize("layer", sorted(ALLOWED))
def test_imports_go_to_the_left_only(layer):
    wrong = []
    for path in package_sources():
        if layer_of(module_name(path)) != layer:
            continue
        for line, name in imports(path):
            target = layer_of(name)
            # every layer may import `kafkapy.__version__`
            if target in ALLOWED and target not in ALLOWED[layer]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


# Libraries that the broker never imports, and the layers that may.
OPTIONAL = {
    "anyio": {"console", "http"},
    "fastavro": {"client"},
    "h11": {"http"},
    "jinja2": {"console"},
    "jsonschema": {"client", "registry"},
    "kazoo": {"server"},
    "msgpack": {"client", "console", "tools", "spark"},
    "prometheus_client": {"client", "tools", "spark"},
    "re2": {"console"},
    "starlette": {"console", "http", "registry", "rest"},
    "uvicorn": {"http"},
}


def test_libraries_for_others_are_not_imported_by_the_broker():
    """The libraries msgpack and prometheus-client serve serializers, jobs and tools; kazoo serves the mirror in
    a user's ZooKeeper, which the broker imports only when its key is set."""
    pattern = re.compile(r"^\s*(?:import|from) (\w+)", re.MULTILINE)
    assert not [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in package_sources()
        for name in OPTIONAL.keys() & set(pattern.findall(path.read_text()))
        if layer_of(module_name(path)) not in OPTIONAL[name]
    ]
