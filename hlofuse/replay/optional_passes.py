"""Passes that XLA has and a target leaves out by default (`--enable`)."""

from __future__ import annotations

from collections.abc import Iterable

from hlofuse.ir.errors import HlofuseError
from hlofuse.pipelines.targets import TARGETS
from hlofuse.rules.catalogue import catalogue


def with_enabled(target: str, passes: tuple[str, ...], names: Iterable[str]) -> tuple[str, ...]:
    """`passes` with the passes asked for at the end.

    A name is an addition of the target (`Target.additions`), a pass in one, or the code of a rule that
    only such a pass asks. HlofuseError for any other.
    """
    for name in names:
        passes = _with(target, passes, name)
    return passes


def _with(target: str, passes: tuple[str, ...], name: str) -> tuple[str, ...]:
    additions = TARGETS[target].additions
    code = name.upper()
    for addition in additions:
        if name in (addition.name, *addition.passes) or code.rstrip("0123456789") in addition.families:
            # The last passes of a target tidy up, and do so again after what is added.
            return passes if set(addition.passes) <= set(passes) else (*passes, *addition.passes)
    known = {a.name: a for a in additions}
    rules = catalogue()
    if code in rules:
        raise HlofuseError(
            f"rule {code} belongs to no pass that target {target} leaves out by default"
            f" (--enable takes {_listed(known)})"
        )
    raise HlofuseError(f"target {target} leaves out nothing called {name!r}; --enable takes {_listed(known)}")


def _listed(known: Iterable[str]) -> str:
    return ", ".join(known) or "nothing here: there is no such pass"
