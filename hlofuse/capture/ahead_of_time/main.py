"""Compile the requested programs and write XLA's dumps. Needs only the standard library and jax: hlofuse
itself need not be installed with that JAX. XLA reads its flags once a process, so this is a separate process.
Its answer, a JSON file named in the request, has the versions, the failed programs, and missing packages."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from .compiling import compile_function, compile_module, read_module
from .devices import Devices, add_flags, devices_needed, devices_of, find_nvcc, version_of
from .programs import MISSING, Problem, functions, resolve


def main() -> None:
    """Read the request, compile, write the answer; does not return."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    answer: dict[str, Any] = {"errors": {}, "compiled": []}
    try:
        _compile_all(request, answer)
    except Problem as problem:
        answer["problem"] = {"kind": problem.kind, "message": str(problem)}
    _write(request, answer)
    _end()


def _end() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # some plugins do not survive their own end


def _write(request: dict[str, Any], answer: dict[str, Any]) -> None:
    """Write the answer so far completely, since XLA may abort at any program."""
    path = Path(request["answer"])
    part = path.with_suffix(".part")
    part.write_text(json.dumps(answer), encoding="utf-8")
    part.replace(path)


def _compile_all(request: dict[str, Any], answer: dict[str, Any]) -> None:
    answer["flags_of_release"] = add_flags(request.get("flags_of_releases", []))
    find_nvcc()
    try:
        import jax
    except ImportError as error:
        raise Problem(MISSING, f"jax ({error})") from None
    import jaxlib

    with suppress(Exception):  # not public
        from jax._src.source_info_util import register_exclusion

        register_exclusion(os.path.dirname(os.path.abspath(__file__)))  # no line of a program
    answer["versions"] = {"python": sys.version.split()[0], "jax": jax.__version__}
    answer["versions"]["jaxlib"] = getattr(jaxlib, "__version__", "unknown")
    if request["target"] == "tpu":
        answer["versions"]["libtpu"] = version_of("libtpu")
    devices = devices_of(request)
    answer["unknown_fields"] = devices.unknown_fields
    modules, dump = request.get("modules"), Path(request["dump"])
    earlier = {*dump.glob("*")}
    try:
        todo: list[tuple[str, Any]] = (
            [(m["name"], m["path"]) for m in modules] if modules else functions(request)
        )
    except Problem:
        if devices.are_counted:
            answer["devices_needed"] = 0
        raise
    for file in filter(Path.is_file, {*dump.glob("*")} - earlier):
        file.unlink()  # of a module that ran while the script was imported
    answer["names"] = [name for name, _ in todo]
    for name, program in todo:
        if name not in request.get("done", ()):
            _compile(name, program, devices, request, answer)


def _compile(
    name: str,
    program: Any,
    devices: Devices,
    request: dict[str, Any],
    answer: dict[str, Any],
) -> None:
    answer["started"] = name
    _write(request, answer)
    try:
        if request.get("modules"):
            compile_module(read_module(Path(program)), devices)
        else:
            function, arguments = resolve(program)
            needed = devices_needed(arguments)
            if devices.mesh is None:
                is_wrong = needed > 1 or (needed == 1 and devices.are_counted)
            else:
                is_wrong = bool(request.get("takes_all")) and 0 < needed < len(devices.all)
            if is_wrong:
                answer["devices_needed"] = needed
                number = "one device" if needed == 1 else f"{needed} devices"
                raise ValueError(f"its arguments are placed on a mesh of {number}")
            compile_function(name, function, arguments, devices)
        answer["compiled"].append(name)
    except Exception as error:  # what the compiler refuses late has left its dumps
        reason = " ".join(str(error).split()).replace('"-":', "line ")  # of text from memory
        answer["errors"][name] = f"{type(error).__name__}: {reason[:600]}"
        if devices.are_counted and (isinstance(error, ValueError) or not request.get("modules")):
            answer.setdefault("devices_needed", 0)
