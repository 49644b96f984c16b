"""Packages found by their entry points, and loading those that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from hlofuse.ir.errors import HlofuseError
from hlofuse.plugins.active import ActiveRules
from hlofuse.plugins.entries import Package, make_package

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "hlofuse.rules"


def installed_names() -> list[str]:
    """What `--rules` takes, in order of names; nothing is imported."""
    return sorted(_found())


def load_rules(names: Iterable[str]) -> ActiveRules:
    """The packages of these names (`all`: every one installed); HlofuseError for one that cannot be used."""
    wanted: dict[str, None] = {}
    for name in names:
        wanted |= dict.fromkeys(installed_names() if name == "all" else [name])
    active = ActiveRules(tuple(load_package(name) for name in wanted))
    owner: dict[str, str] = {}
    kernels: dict[str, str] = {}
    for package in active.packages:
        for code in package.rules:
            if code in owner:
                raise HlofuseError(f"rules packages {owner[code]} and {package.name} both have a rule {code}")
            owner[code] = package.name
    for target in ("cpu", "gpu", "gpu-legacy"):
        for fusion in active.fusions(target):
            other = kernels.setdefault(fusion.kernel, fusion.code)
            if other != fusion.code:
                raise HlofuseError(f"rules {other} and {fusion.code} both name their kernel {fusion.kernel}")
    return active


def load_package(name: str) -> Package:
    """One package, imported and checked."""
    point = _found().get(name)
    if point is None:
        rules_by_code = ", ".join(installed_names())
        raise HlofuseError(
            f"no installed package registers rules as {name!r}; "
            + (
                f"there are: {rules_by_code}"
                if rules_by_code
                else f"none has an entry point in the group {GROUP}"
            )
        )
    return _load(point)


@lru_cache(maxsize=64)
def _load(point: EntryPoint) -> Package:
    distribution = f"{point.dist.name} {point.dist.version}" if point.dist is not None else ""
    try:
        entries = point.load()
    except HlofuseError:
        raise
    except Exception as error:
        raise HlofuseError(
            f"rules package {point.name} ({distribution}) cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return make_package(point.name, distribution, entries)


def _found() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, and most runs do without

    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        other = found.setdefault(point.name, point)
        if other != point:
            raise HlofuseError(
                f"two installed packages register rules as {point.name!r}: {_origin(other)} and "
                f"{_origin(point)}"
            )
    return found


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
