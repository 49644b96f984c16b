"""Hatchling's hook for a wheel whose hot modules are machine code: off unless asked for (`docs/compiled.md`).

The modules are those of `[tool.hatch.build.targets.wheel.hooks.custom]` in `pyproject.toml`. mypyc translates
them from their type hints, the C compiler does the rest; the Python files go into the wheel besides.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileHook(BuildHookInterface[Any]):
    """Compiles the modules and adds what comes of them to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """`version` is hatchling's word for the kind of wheel; an editable one stays plain Python."""
        if version == "editable":
            return
        root = Path(self.root)
        # Kept, since pip asks twice for one wheel and the next wheel differs in few modules.
        scratch = root / "build" / "compiled" / str(sys.implementation.cache_tag)
        paths = chosen(root, self.config["modules"], self.config["plain"])
        for library in compile_modules(root, paths, scratch):
            build_data["force_include"][str(library)] = str(library.relative_to(scratch / "lib"))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def chosen(root: Path, modules: list[str], plain: list[str]) -> list[Path]:
    """The files that match a pattern of `modules` and none of `plain`; each pattern matches something."""
    found = {pattern: set(root.glob(pattern)) for pattern in (*modules, *plain)}
    if missing := [pattern for pattern, paths in found.items() if not paths]:
        raise ValueError(f"pyproject.toml names modules to compile that are not there: {', '.join(missing)}")
    return sorted(set().union(*map(found.get, modules)).difference(*map(found.get, plain)))


def compile_modules(root: Path, paths: list[Path], scratch: Path) -> list[Path]:
    """The shared libraries of the modules at `paths`, below `scratch`/lib as in the wheel."""
    from mypyc.build import mypycify
    from setuptools import Distribution

    os.chdir(root)  # names of modules are found from here
    extensions = mypycify(
        [
            "--config-file=",
            "--ignore-missing-imports",
            f"--cache-dir={scratch / 'cache'}",
            *[str(path.relative_to(root)) for path in paths],
        ],
        opt_level="2",
        debug_level="0",
        multi_file=True,
        group_name="hlofuse",
        target_dir=str(scratch / "c"),
    )
    command = Distribution({"name": "hlofuse", "ext_modules": extensions}).get_command_obj("build_ext")
    command.build_lib, command.build_temp = str(scratch / "lib"), str(scratch / "objects")  # type: ignore[attr-defined]
    command.ensure_finalized()
    command.run()
    return [Path(path) for path in command.get_outputs()]
