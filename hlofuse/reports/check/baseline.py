"""The stored baseline, read and written."""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from hlofuse.format.escape import printable
from hlofuse.inputs import read_text
from hlofuse.ir.errors import HlofuseError
from hlofuse.reports.check.limits import Budget
from hlofuse.reports.check.model import BaselineKernel, Figures, Profile, Where

VERSION = 1
HEAD = """\
# What XLA's fusion passes leave of each module: kernels, and where they come from. Written by
# `hlofuse check … --baseline FILE --update`; edit what is above the first module.

version = 1
"""

_LIMITS = ("max-bytes", "max-time", "max-memory")
"""Keys of a budget, but for kernels."""
_LINE = re.compile(r"(?:(\d{1,6}) × )?(.*) \| ([^|]*)", re.DOTALL)
_PLACE = re.compile(r"(.*?):(\d{1,9})(?: (.*))?", re.DOTALL)

_FIRST_MODULE = re.compile(r"^[ \t]*\[module\.", re.MULTILINE)


@dataclass(slots=True)
class Baseline:
    """Profiles by name, and the budgets that stand with them."""

    profiles: dict[str, Profile] = field(default_factory=dict)
    budgets: list[Budget] = field(default_factory=list)


def read_baseline(path: Path) -> Baseline:
    """HlofuseError for what cannot be read, is no TOML or no baseline, saying where."""
    found = Baseline()
    if path.is_dir():
        files = sorted(path.glob("*.toml"))
        if not files:
            raise HlofuseError(
                f"{printable(str(path))}: no baseline (*.toml) in this directory; --update writes one"
            )
    elif not path.exists():
        raise HlofuseError(f"{printable(str(path))}: no such file; --update writes it")
    else:
        files = [path]
    for file in files:
        _read_file(file, found)
    return found


def _read_file(file: Path, into: Baseline) -> None:
    text = read_text(file, as_module=False)
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as e:
        raise HlofuseError(f"{printable(str(file))}: not TOML: {printable(str(e))}") from None
    try:
        if data.get("version") != VERSION:
            raise ValueError(f"expected version = {VERSION} at the top")
        _check_names(data, {"version", "budget", "module"}, "the file")
        into.budgets += [_budget(b) for b in _list(data.get("budget", []), "[[budget]]")]
        for name, table in _table(data.get("module", {}), "[module]").items():
            if name in into.profiles:
                raise ValueError(f"module {name} is also in another file")
            into.profiles[name] = _profile(name, _table(table, f"module {name}"))
    except ValueError as e:
        raise HlofuseError(f"{printable(str(file))}: not a baseline: {printable(str(e))}") from None


def _budget(value: Any) -> Budget:
    table = _table(value, "[[budget]]")
    _check_names(table, {"modules", "max-kernels", *_LIMITS}, "[[budget]]")
    most = table.get("max-kernels")
    if most is not None:
        most = _count(most, "max-kernels")
    modules = _text(table.get("modules", "*"), "modules")
    size, time, memory = map(table.get, _LIMITS)
    budget = Budget.of(most, size, time, memory, modules)
    if budget.is_empty:
        raise ValueError("a [[budget]] needs max-kernels, max-bytes, max-time or max-memory")
    return budget


def _profile(name: str, table: Mapping[str, Any]) -> Profile:
    where = f"module {name}"
    times = {name: table.get(name) for name in ("time_us", "measured_us")}
    _check_names(table, {"target", "device", "xla", "kernels", "bytes", *times, "memory", "list"}, where)
    for key, us in times.items():
        if us is not None and (isinstance(us, bool) or not isinstance(us, int | float)):
            raise ValueError(f"{key} of {where} must be a number")
    device = table.get("device")
    us, measured_us = (float(us) if us is not None else None for us in times.values())
    count, moved = (_count(table.get(key), f"{key} of {where}") for key in ("kernels", "bytes"))
    memory = _count(table["memory"], f"memory of {where}") if "memory" in table else None
    figures = Figures(count, moved, us, measured_us, memory)
    listed = [k for line in _list(table.get("list", []), f"list of {where}") for k in _kernels(line)]
    if len(listed) != figures.kernels:
        raise ValueError(f"the list of {where} has {len(listed)} kernels, but kernels = {figures.kernels}")
    return Profile(
        name,
        _text(table.get("target"), f"target of {where}"),
        _text(device, f"device of {where}") if device is not None else None,
        _text(table.get("xla", ""), f"xla of {where}"),
        figures,
        tuple(listed),
    )


def _kernels(line: Any) -> list[BaselineKernel]:
    found = _LINE.fullmatch(_text(line, "a line of a list"))
    if found is None or found[1] == "0":
        raise ValueError(f"expected a line `PLACE | KERNEL` or `2 × PLACE | KERNEL`, found {line!r}")
    place = _PLACE.fullmatch(found[2])
    where = Where(place[1], int(place[2]), place[3] or "") if place else Where(found[2])
    return [BaselineKernel(found[3], where if found[2] != "?" else Where())] * int(found[1] or 1)


def _table(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be a table")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} must be a list")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} must be a string")
    return value


def _count(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{what} must be an integer")
    return value


def _check_names(table: Mapping[str, Any], names: set[str], what: str) -> None:
    unknown = sorted(set(table) - names)
    if unknown:
        raise ValueError(f"{what} has unknown {unknown[0]!r}; expected one of {', '.join(sorted(names))}")


def updated_files(path: Path, profiles: Iterable[Profile]) -> dict[Path, str]:
    """The texts that `--update` writes, by file; modules that are not among `profiles` stay as they are.

    HlofuseError for a baseline that is there and cannot be read: nothing is lost by overwriting it.
    """
    wanted = {p.name: p for p in profiles}
    if path.is_dir() or (not path.exists() and path.suffix == ""):
        files = {path / f"{_file_name(name)}.toml": [p] for name, p in wanted.items()}
        if len(files) < len(wanted) or (path.is_dir() and any(path.glob("*.toml"))):
            _refuse_clashes(path, files, len(wanted))
        return {file: _whole(file, listed) for file, listed in files.items()}
    stored = read_baseline(path).profiles if path.exists() else {}
    return {path: _whole(path, (stored | wanted).values())}


def _refuse_clashes(path: Path, files: dict[Path, list[Profile]], wanted: int) -> None:
    if len(files) < wanted:
        raise HlofuseError(
            "two modules would have the same file name in the baseline directory; give a FILE instead"
        )
    read_baseline(path)
    for file, (profile,) in files.items():
        others = set(read_baseline(file).profiles) - {profile.name} if file.exists() else set()
        if others:
            raise HlofuseError(
                f"{printable(str(file))} belongs to module {printable(min(others))}; give a FILE instead"
            )


def _file_name(module: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", module).lstrip(".")[:120] or "module"


def _whole(file: Path, profiles: Iterable[Profile]) -> str:
    text = read_text(file, as_module=False) if file.exists() else ""
    first = _FIRST_MODULE.search(text)
    head = (text[: first.start()] if first else text) or HEAD
    parts = [module_text(p) for p in sorted(profiles, key=lambda p: p.name)]
    return head.rstrip() + "\n\n" + "\n".join(parts)


def module_text(p: Profile) -> str:
    lines = [f"[module.{_quote(p.name)}]", f"target = {_quote(p.target)}"]
    if p.device is not None:
        lines.append(f"device = {_quote(p.device)}")
    if p.release:
        lines.append(f"xla = {_quote(p.release)}")
    lines += [f"kernels = {p.figures.kernels}", f"bytes = {p.figures.bytes:_}"]
    for key, us in (("time_us", p.figures.us), ("measured_us", p.figures.measured_us)):
        lines += [f"{key} = {us:.2f}"] if us is not None else []
    lines += [f"memory = {p.figures.memory:_}"] if p.figures.memory is not None else []
    lines += ["list = [", *(f"  {_quote(line)}," for line in _list_lines(p.kernels)), "]"]
    return "\n".join(lines) + "\n"


def _list_lines(kernels: Iterable[BaselineKernel]) -> Iterable[str]:
    ordered = sorted(kernels, key=lambda k: (k.where, k.what))
    for (where, what), same in groupby(ordered, key=lambda k: (k.where, k.what)):
        count = len(list(same))
        yield f"{f'{count} × ' if count > 1 else ''}{where} | {what}"


def _quote(text: str) -> str:
    return json.dumps(printable(text), ensure_ascii=False)
