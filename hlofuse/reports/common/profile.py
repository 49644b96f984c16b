"""A profile's figures of the whole program: sentences and JSON."""

from collections.abc import Iterator, Sequence

from hlofuse.account.measured import Measured
from hlofuse.format import fields, listing, plural, printable, us_text
from hlofuse.inputs.profile import DeviceTime, ProfiledModule
from hlofuse.ir import Json, grouped

_MOST_OF_TIME = 0.5
_MUCH_OF_TIME = 0.3
_LEAST_SHARE = 0.01
_DISPATCHES = 20
_SHORT_US = 20  # of a program that takes no longer than its dispatch
_MODULES = 2
_PROGRAMS = 3  # of one name: one for a first call and one for the rest are common
_UNMATCHED = 3


def profile_lines(m: Measured) -> Iterator[str]:
    """The measured program and how many times found their instruction; then how busy the device was."""
    modules, total = m.profile.modules, m.profile.total_us or 1.0
    line = joined_line(m)
    others = [x for x in modules if x is not m.source and x.total_us >= _LEAST_SHARE * total]
    if others:
        shown = [f"{_label(x, modules)} {_percent(x.total_us / total)}" for x in others[:_MODULES]]
        line += f" · {_percent(m.source.total_us / total)} of all time, {listing(shown, len(shown))}"
        line += f" and {len(others) - len(shown)} more" if len(others) > len(shown) else ""
    yield line
    yield from _device_lines(m.profile.devices)
    waits, modules = m.profile.waits, m.profile.modules
    kinds = {d.kind for d in m.profile.devices}
    counts = [m.runs if x is m.source else x.runs for x in modules]
    if kinds == {"cpu"}:  # where loops are events, too
        rarest = (min(t.calls for t in x.times.values()) for x in modules)
        counts = [n or least for n, least in zip(counts, rarest, strict=True)]
    short = sum(n for n, x in zip(counts, modules, strict=True) if x.total_us <= _SHORT_US * n)
    if waits < _DISPATCHES <= short and 2 * short > sum(counts):
        runs = f"{short:,} of {plural(sum(counts), 'run')} take at most {_SHORT_US} µs on average"
        yield f"{runs}, each dispatched by the host: jit the whole step, or the loop (lax.scan, vmap)"
    of_name = max(grouped((x.name, x) for x in modules).values(), key=_time_of_several, default=[])
    if len(of_name) >= _PROGRAMS:
        named = f"{len(of_name)} programs are named {printable(of_name[0].name)}: if they are one function,"
        yield f"{named} XLA compiled it for each; pad its arrays to one shape, keep what jax.jit returns"
    if waits >= _DISPATCHES and 2 * sum(counts) >= waits:  # few gaps are within runs
        many = plural(sum(n > 0 for n in counts), "program")
        gap = f"{us_text(m.profile.wait_us)} of waiting for the host before each (median)"
        runs = f"{plural(sum(counts), 'run')} of {many}"
        yield f"{runs}, {gap}: jit the whole loop (lax.scan, vmap), or use whole arrays"


def _time_of_several(programs: Sequence[ProfiledModule]) -> float:
    return sum(x.total_us for x in programs) if len(programs) >= _PROGRAMS else 0.0


def joined_line(m: Measured) -> str:
    """The measured program, and how many times found their instruction."""
    if m.profile.run_us is not None:
        runs, fastest = plural(m.profile.run_count, "run"), us_text(m.profile.fastest_us)
        how = f"lower quartile of {runs}, fastest {fastest}, noise {_percent(m.profile.noise)}"
        how = f"{us_text(m.profile.run_us)} a run ({how}); {printable(m.profile.inputs)}"
        return f"Measured on this machine: {how}"
    line = f"Profile: {plural(m.runs, 'run')} of {_label(m.source, m.profile.modules)}"
    line += " after the first" if m.source.is_warm else ""
    line += f", {_percent(m.share)} of its time matched to kernels"
    if m.share < 1 and (lost := [t for t in m.unmatched if t.total_us >= _LEAST_SHARE * m.source.total_us]):
        shown = [f"{printable(t.name)} {_percent(t.total_us / m.source.total_us)}" for t in lost]
        line += f"; not matched: {listing(shown, _UNMATCHED)}"
    return line + (f"; {plural(len(m.refused), 'name')} mean another operation here" if m.refused else "")


def _device_lines(devices: Sequence[DeviceTime]) -> Iterator[str]:
    span, busy, exposed = (
        sum(getattr(d, name) for d in devices) for name in ("span_us", "busy_us", "exposed_us")
    )
    if not span or not busy:
        return
    gap = max(d.longest_gap_us for d in devices)
    name = printable(devices[0].name) if len(devices) == 1 else plural(len(devices), "device")
    line = f"{name}: busy {_percent(busy / span)} of {us_text(span / len(devices))}"
    if gap:
        line += f" · {plural(sum(d.gaps for d in devices), 'gap')}, the longest {us_text(gap)}"
    for what, us in (
        ("copies", sum(d.copies_us for d in devices)),
        ("collectives", sum(d.collectives_us for d in devices)),
        ("kernels of no HLO", sum(d.other_us for d in devices)),
    ):
        if us > busy / 100:
            line += f" · {what} {_percent(us / busy)} of busy time"
    yield line
    if busy < (1 - _MOST_OF_TIME) * span:
        yield f"Fusion is not the problem here: {_percent(1 - busy / span)} of the time nothing runs"
    elif exposed > _MUCH_OF_TIME * busy:
        part = _percent(exposed / busy)
        yield f"Fusion helps little here: {part} of the time is copies and collectives alone"


def _label(module: ProfiledModule, modules: Sequence[ProfiledModule]) -> str:
    """Its name, with the program id where several have that name."""
    alone = sum(m.name == module.name for m in modules) == 1
    return printable(module.name if alone else module.label)


def _percent(part: float) -> str:
    return f"{100 * part:.0f}%"


def profile_json(m: Measured | None) -> Json:
    """The key `profile` of a report, with its object; nothing without a profile."""
    if m is None:
        return {}
    spec = "name kind span_us~ busy_us~ gaps longest_gap_us~ copies_us~ collectives_us~ other_us~ exposed_us~"
    found = {
        **fields(m, "file=profile.path module=source.label runs"),
        "found": {"share": round(m.share, 4), "launches": m.found_calls, "of": m.calls},
        "unmatched": [fields(t, "name calls total_us~") for t in m.unmatched],
        "other_operation": list(m.refused),
        "modules": [fields(x, "name program time_us=total_us~") for x in m.profile.modules],
        "devices": [fields(d, spec) for d in m.profile.devices],
    }
    return {"profile": found}
