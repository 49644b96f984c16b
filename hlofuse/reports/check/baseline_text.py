"""Writing a baseline: every line something a reviewer can judge, the same text for the same kernels."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from hlofuse.format.escape import printable
from hlofuse.inputs import read_text
from hlofuse.reports.check.baseline import HEAD, is_folder, read_baseline
from hlofuse.reports.check.model import Kernel, Profile

_FIRST_MODULE = re.compile(r"^[ \t]*\[module\.", re.MULTILINE)


def updated_files(path: Path, profiles: Iterable[Profile]) -> dict[Path, str]:
    """The texts that `--update` writes, by file; modules that are not among `profiles` stay as they are.

    HlofuseError for a baseline that is there and cannot be read: nothing is lost by overwriting it.
    """
    wanted = {p.name: p for p in profiles}
    if is_folder(path):
        files = {path / f"{_file_name(name)}.toml": [p] for name, p in wanted.items()}
        if len(files) < len(wanted) or (path.is_dir() and any(path.glob("*.toml"))):
            _refuse_clashes(path, files, len(wanted))
        return {file: _whole(file, listed) for file, listed in files.items()}
    kept = read_baseline(path).profiles if path.exists() else {}
    return {path: _whole(path, (kept | wanted).values())}


def _refuse_clashes(path: Path, files: dict[Path, list[Profile]], wanted: int) -> None:
    from hlofuse.ir.errors import HlofuseError

    if len(files) < wanted:
        raise HlofuseError("two modules would have the same file name in the baseline: give a FILE instead")
    read_baseline(path)
    for file, (profile,) in files.items():
        others = set(read_baseline(file).profiles) - {profile.name} if file.exists() else set()
        if others:
            raise HlofuseError(f"{printable(str(file))} is of {printable(min(others))}: give a FILE instead")


def _file_name(module: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", module).lstrip(".")[:120] or "module"


def _whole(file: Path, profiles: Iterable[Profile]) -> str:
    text = read_text(file, as_module=False) if file.exists() else ""
    first = _FIRST_MODULE.search(text)
    head = (text[: first.start()] if first else text) or HEAD
    parts = [module_text(p) for p in sorted(profiles, key=lambda p: p.name)]
    return head.rstrip() + "\n\n" + "\n".join(parts)


def module_text(p: Profile) -> str:
    """One module's part of a baseline."""
    lines = [f"[module.{_quoted(p.name)}]", f"target = {_quoted(p.target)}"]
    if p.device is not None:
        lines.append(f"device = {_quoted(p.device)}")
    if p.release:
        lines.append(f"xla = {_quoted(p.release)}")
    lines += [f"kernels = {p.figures.kernels}", f"bytes = {p.figures.bytes:_}"]
    if p.figures.us is not None:
        lines.append(f"time_us = {p.figures.us:.2f}")
    lines += ["list = [", *(f"  {_quoted(line)}," for line in _listed(p.kernels)), "]"]
    return "\n".join(lines) + "\n"


def _listed(kernels: Iterable[Kernel]) -> Iterable[str]:
    ordered = sorted(kernels, key=lambda k: (k.where, k.what))
    for (where, what), same in groupby(ordered, key=lambda k: (k.where, k.what)):
        count = len(list(same))
        yield f"{f'{count} × ' if count > 1 else ''}{where} | {what}"


def _quoted(text: str) -> str:
    return json.dumps(printable(text), ensure_ascii=False)
