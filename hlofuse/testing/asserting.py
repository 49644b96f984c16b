"""Assertions about fusion, of a dump, text, module or capture, with the blocking rules in the message."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hlofuse.ir import HlofuseError, Module
from hlofuse.library.measuring import measure_all
from hlofuse.library.opening import open as open_report
from hlofuse.reports.check import Check, Measured, Profile, check_modules
from hlofuse.reports.check.baseline import Budget


def measure(
    program: Any,
    target: str | None,
    device: str | None,
    root: Path,
    profile: str | None = None,
) -> Measured:
    """The fusion result of a program on a target; raises `HlofuseError` if it cannot be replayed."""
    is_capture = callable(getattr(program, "module", None))
    if not (is_capture or isinstance(program, str | os.PathLike | Module)):
        raise HlofuseError(
            f"expected a dump's path, HLO text, a module or a capture, found {type(program).__name__}"
        )
    options = open_report(program, target=target, device=device, profile=profile).options
    found = measure_all([options], root)
    if len(found) != 1:
        raise HlofuseError(f"{program} has {len(found)} modules; give one dump")
    if found[0].note:
        warnings.warn(found[0].note, stacklevel=2)
    return found[0]


def assert_fusion(
    program: Any,
    *,
    at_most: int | None = None,
    together: Sequence[str] = (),
    max_bytes: int | str | None = None,
    max_time: str | None = None,
    max_memory: int | str | None = None,
    target: str | None = None,
    device: str | None = None,
    profile: str | None = None,
) -> Profile:
    """Replay XLA's fusion of a module and check it against bounds; returns the measured profile.

    program: the path of a dump, an HLO text, a `hlofuse.ir.Module` or a result of `hlofuse.capture`. at_most:
    kernels; max_bytes: bytes moved (`"1.5MB"` or a number); max_time (`"120us"`): measured with a `profile`
    of the program, else estimated (GPU); max_memory: bytes of arguments, results and temporaries;
    together: opcodes that one kernel has to contain; target, device: as in `hlofuse check`.

    Raises `AssertionError` with the broken bound, place and rule; `HlofuseError` if it cannot be replayed."""
    __tracebackhide__ = True  # pytest shows the caller's line, not ours
    budget = Budget.of(at_most, max_bytes, max_time, max_memory)
    if budget.is_empty and not together:
        raise TypeError("nothing to assert; give at_most, together, max_bytes, max_time or max_memory")
    found = measure(program, target, device, Path(), profile)
    check = check_modules([found], budgets=[] if budget.is_empty else [budget])
    if check.failed:
        raise AssertionError(report(check))
    if together:
        _assert_together(found, frozenset(together))
    return found.profile


def assert_kernels(
    function: Any,
    arguments: Sequence[Any] = (),
    *,
    at_most: int,
    target: str | None = None,
    device: str | None = None,
) -> Profile:
    """Compile a JAX function ahead of time (`hlofuse.capture`) and bound its kernels after fusion. arguments:
    arrays or jax.ShapeDtypeStruct. No accelerator is needed; for target gpu JAX's CUDA plugin is. Raises
    `AssertionError` and `HlofuseError` as `assert_fusion`; `CaptureError`, one of them, if XLA refuses it."""
    from hlofuse import capture

    __tracebackhide__ = True
    with TemporaryDirectory(prefix="hlofuse-") as folder:
        program = capture(function, *arguments, target=target, device=device, out=Path(folder, "capture"))
        return assert_fusion(program, at_most=at_most, target=target, device=device)


def report(check: Check) -> str:
    """The text report without colours."""
    from hlofuse.cli.common.output import rendered
    from hlofuse.reports.check.text import print_check

    return rendered(lambda console: print_check(check, console), "never").rstrip("\n")


def _assert_together(found: Measured, wanted: frozenset[str]) -> None:
    from hlofuse.reports.check.text import listed, pair

    __tracebackhide__ = True
    kernels = found.profile.kernels
    if any(wanted <= (k.operations or {k.what}) for k in kernels):
        return
    near = sorted(kernels, key=lambda k: -len(wanted & k.operations))
    lines = [f"{found.profile.name}: no kernel has {', '.join(sorted(wanted))} together; nearest:"]
    lines += [f"  {line}" for line in listed(k for k in near if wanted & k.operations)]
    names = {k.input_name for k in near if wanted & k.operations}
    reasons = [h for h in found.refused_edges() if h.kernels <= names]
    lines += [f"  {h.rule} refused {pair(h)}: {h.title}" for h in reasons[:5]]
    raise AssertionError("\n".join(lines))
