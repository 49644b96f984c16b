"""Rules, places, figures and loops in words: the same in every report."""

from collections.abc import Sequence

from hlofuse.account import Totals
from hlofuse.analysis.kernels import Loop
from hlofuse.format import bytes_text, listing, plural, printable, us_text
from hlofuse.format.paths import layer_of
from hlofuse.inputs.profile import MeasuredTime
from hlofuse.rules.catalogue import Rule
from hlofuse.trace import Figures
from .model import CreatedBy, Place


def advice_line(rule: Rule) -> str:
    """`What to do: …`; empty where that is nothing."""
    return f"What to do: {rule.advice}" if rule.advice else ""


def created_by_lines(explained: Sequence[CreatedBy], *, flags: bool = True) -> list[str]:
    """What a pass before fusion did and by which rule; with `flags` a second line has the flag against it."""
    lines = []
    for m in explained:
        names = [printable(n) for n in m.created]
        pass_name = printable(m.pass_name)
        if m.removed:
            verb = "was created" if len(names) == 1 else "were created"
            head = f"{listing(names, 4)} {verb} by {pass_name}"
            if set(m.removed) - set(m.created):
                head += f" from {listing([printable(n) for n in m.removed], 4)}"
        else:
            head = f"{pass_name} did not fuse {names[-1]} into {names[0]}"
        lines.append(f"{head}: {printable(m.reason)} ({m.rule.code})")
        if m.rule.flag and flags:
            lines.append(f'XLA_FLAGS="{m.rule.flag}" disables {pass_name}')
    return lines


def measured_text(m: MeasuredTime | None) -> str:
    """Measured time of one launch, and how often it was launched; a dash for what did not run."""
    return "–" if m is None else us_text(m.us) + (f" × {m.calls:,}" if m.calls != 1 else "")


def origin(place: Place, count: int = 0) -> str:
    """`LM/layer_0/Dense_1: flax/linen/linear.py:273 __call__, from model.py:12 apply`; `count` more."""
    layer = layer_of(place.op_name)
    if layer and count:
        layer += f" and {count} more of its kind"
    line = ", from ".join(filter(None, (place.source, place.called_from)))
    return ": ".join(filter(None, (layer, line)))


def figures_text(figures: Figures) -> str:
    """`producer_elements=1024` → `producer elements 1,024`."""
    parts = []
    for key, value in figures.items():
        label = printable(str(key)).replace("_", " ")
        if isinstance(value, bool):
            text = "yes" if value else "no"
        elif isinstance(value, int):
            text = bytes_text(value) if label.endswith("bytes") else f"{value:,}"
        elif isinstance(value, float):
            text = us_text(value) if label.startswith("us ") else f"{value:.4g}"
            label = label.removeprefix("us ")
        else:
            text = printable(str(value))
        parts.append(f"{label} {text}")
    return ", ".join(parts)


def times_text(often: int) -> str:
    """`, 100 times`; empty of what runs once."""
    return f", {often:,} times" if often > 1 else ""


def floors_and_copies(t: Totals) -> list[str]:
    """For how many kernels a lower bound stands in the time, and what copies move; else nothing."""
    found = []
    if t.floors and t.floor_us is not None:
        whose = plural(t.floors, "kernel")
        found.append(
            f"{us_text(t.floor_us)} of the time is a lower bound: XLA's model does not cover {whose}"
        )
    if t.copies:
        found.append(f"{plural(t.copies, 'copy', 'copies')}: {bytes_text(t.copy_bytes)} moved")
    if t.peak_temporary_bytes:
        found.append(f"peak temporary memory: about {bytes_text(t.peak_temporary_bytes)}")
    return found


def loops_line(loops: Sequence[Loop]) -> str:
    """`8 kernels are in a loop: while.3 runs 100 times`."""
    iterations = listing([f"{printable(p.name)} {_trips(p)}" for p in loops], 2)
    count = sum(p.kernels for p in loops)
    where = "a loop" if len(loops) == 1 else "loops"
    are = "is" if count == 1 else "are"
    return f"{plural(count, 'kernel')} {are} in {where}: {iterations}"


def _trips(loop: Loop) -> str:
    if loop.trips is None:
        return "is of unknown length (one iteration counts)"
    return f"runs {loop.trips:,} times"


def changed_lines(what_if: Sequence[str]) -> list[str]:
    """`Changed: without PF002`, for a replay that is not XLA's; else none."""
    if not what_if:
        return []
    return [f"Changed: {', '.join(map(printable, what_if))}"]
