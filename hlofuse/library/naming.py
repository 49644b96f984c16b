"""The names of a replay: XLA's final ones, and the module before optimizations that knows others."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.account.measured import attach, share
from hlofuse.compilation import Compilation
from hlofuse.inputs import load
from hlofuse.inputs.companions import Companions
from hlofuse.inputs.ordered import restore_literals
from hlofuse.inputs.profile import Profile
from hlofuse.ir import HlofuseError, Module, Strings, replace
from hlofuse.pipelines.targets import Stage

if TYPE_CHECKING:
    from hlofuse.reports.common.facts import Facts
    from hlofuse.reports.common.names import Names


def xla_final(replay: Compilation) -> Module | None:
    """XLA's own final module of this compilation next to the input; None without one."""
    return _module_at(_companions(replay).final_module(replay.target))


def _module_at(path: Path | None) -> Module | None:
    """The module in a file, with its literals; None without one, and where it is damaged or cut short."""
    with suppress(HlofuseError):
        if path is not None:
            module = load(path)
            restore_literals(module)
            return module
    return None


def attach_profile(replay: Compilation, profile: Profile) -> None:
    """Join what a replay launches with a profile, and what XLA's final module does where that is at hand."""
    from hlofuse.matching.pairs import match

    attach(replay.final, profile)
    if replay.has_xla_final:
        share(replay.final, replay, match(replay.replayed_final, replay.final).names)


def resolver_of(facts: "Facts") -> "Names":
    """Looks names up in a replay, in the module before optimizations next to its input as well."""
    from hlofuse.reports.common.names import Names

    return Names(facts, lambda: unoptimized_of(facts.replay))


def unoptimized_of(replay: Compilation) -> Module | None:
    """The module before optimizations next to the input; None without one."""
    if replay.input.lowering is not None:
        return replay.input.lowering.input.module
    return _module_at(_companions(replay).before_optimizations)


def with_events(replay: Compilation) -> None:
    """Add the rewrites of the passes before fusion, from the module before them next to the input, if any."""
    from hlofuse.matching.pairs import match

    if replay.input.unoptimized is not None or (module := unoptimized_of(replay)) is None:
        return
    lowering = replay.input.lowering or Compilation.of(module, Stage.BEFORE, replay.config)
    try:
        events = lowering.span(Stage.INPUT).events
    except HlofuseError:  # partitioned by hand, for one
        return
    if not events:
        return
    names = match(replay.before, lowering.before).names
    renamed = [
        e._replace(
            added=tuple(names[n] for n in e.added if n in names),
            producer=names.get(e.producer or ""),
            consumer=names.get(e.consumer or ""),
        )
        for e in events
    ]
    found = tuple(e for e in renamed if e.added or (e.producer and e.consumer))
    replay.input = replace(replay.input, events=found, lowering=lowering)


def is_own_result(replay: Compilation) -> bool:
    """False if what XLA left next to the input cannot be the result of this replay."""
    config, identity = replay.config, replay.input.identity
    # A device that was not requested was read from these files: no need to read it again.
    is_requested = identity is None or (identity.device is not None and identity.device.source == "asked")
    device = replay.device if is_requested else None
    return not config.changes and _companions(replay).is_result_of(config.build.backend, device)


def _companions(replay: Compilation) -> Companions:
    identity = replay.input.identity
    return Companions(identity.file if identity is not None else replay.before.filename)


def drawn_names(drawn: Module | Compilation, view: str, name: str) -> Strings:
    """The names in the drawn module for any name; the name itself where it is there or of no meaning."""
    from hlofuse.reports.common.facts import Facts
    from hlofuse.reports.common.names import matching, plain_name

    plain = plain_name(name)
    if isinstance(drawn, Module):
        shown = [drawn]
    else:
        shown = [m for v, m in (("before", drawn.before), ("after", drawn.after)) if view in (v, "both")]
    if any(m.find(plain) is not None or m.find_computation(plain) is not None for m in shown):
        return (name,)
    if isinstance(drawn, Module):
        found = [i.name for i in matching(drawn, name)]
    else:
        facts = Facts(drawn)
        try:
            meanings = resolver_of(facts).find(name)
        except HlofuseError:  # may be a part, or a computation of the other side
            return (name,)
        found = [meaning.name for meaning in meanings]
        if view == "after":
            found = [k for n in found for k in facts.lineage.kernels_of(n)]
    return tuple(dict.fromkeys(found)) or (name,)
