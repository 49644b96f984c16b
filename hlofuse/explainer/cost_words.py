"""Times and traffic in words."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.explainer.costs import KernelTime, PairDetail, StepCost
from hlofuse.explainer.costs.flips import Flip
from hlofuse.present.escape import printable
from hlofuse.present.units import bytes_text, quantity

_NOTABLE = 0.005  # microseconds: less than half of the last digit shown is not told


def us_text(value: float) -> str:
    """`12.3 µs`: three figures, and no finer than the hundredth of a microsecond."""
    size = abs(value)
    if size >= 9_999.5:
        return f"{value / 1000:,.1f} ms"
    digits = 0 if size >= 999.5 else 1 if size >= 99.95 else 2
    text = f"{value:,.{digits}f} µs"
    return text[1:] if text.startswith("-") and not any(c in "123456789" for c in text) else text


def roofline(k: KernelTime) -> str:
    """What bounds a kernel and by how much, how it is launched, how it reads."""
    more, less = max(k.us_memory, k.us_compute), min(k.us_memory, k.us_compute)
    factor = f" {times_text(more / less)}" if less > _NOTABLE else ""
    reads = "coalesced" if k.coalesced else "reads not coalesced"
    return (
        f"{us_text(k.us)}, {k.bound_by}-bound{factor} (compute {_bare(k.us_compute)}, memory"
        f" {_bare(k.us_memory)}); {k.emitter}, {k.blocks:,} × {k.threads:,} threads, {reads}"
    )


def _bare(value: float) -> str:
    return us_text(value).removesuffix(" µs")


def times_text(factor: float) -> str:
    """`2.4×`, `12×`."""
    return f"{factor:.1f}×" if factor < 9.95 else f"{factor:,.0f}×"


def why_saves(cost: StepCost, producer_opcode: str = "") -> str:
    """What a fusion gained and what it paid, in order of weight: the reason in one line."""
    gains: list[tuple[float, str]] = []
    pays: list[tuple[float, str]] = []
    if cost.leaves:
        shared = f" shared by {cost.consumers}" if cost.consumers > 1 else ""
        gains.append((cost.us_launch / cost.consumers, f"one launch ({us_text(cost.us_launch)}){shared}"))
    memory = _memory_less(cost)
    if cost.bytes_less > 0 and memory > -_NOTABLE:
        gains.append((memory, f"{bytes_text(cost.bytes_less)} less traffic"))
    elif cost.bytes_less < 0:
        pays.append((-memory, f"{bytes_text(-cost.bytes_less)} more traffic"))
    elif memory < -_NOTABLE:
        pays.append((-memory, f"reading is slower by {us_text(-memory)}"))
    if cost.consumer.coalesced and not cost.fused.coalesced:
        pays.append((0.0, "reads are no longer coalesced"))
    elif cost.fused.coalesced and not cost.consumer.coalesced:
        gains.append((0.0, "reads become coalesced"))
    more = cost.us_compute_more
    if more > _NOTABLE:
        pays.append((more, f"compute grows by {us_text(more)}{_because(cost, producer_opcode)}"))
    elif more < -_NOTABLE:
        gains.append((-more, f"{us_text(-more)} less compute{_wider(cost)}"))
    text = " and ".join(t for _, t in sorted(gains, key=lambda pair: -pair[0])) or "nothing"
    against = ", ".join(t for _, t in sorted(pays, key=lambda pair: -pair[0]))
    return f"{text}; {against}" if against else text


def _memory_less(cost: StepCost) -> float:
    own = cost.producer.us_memory / cost.consumers if cost.leaves else 0.0
    return own + cost.consumer.us_memory - cost.fused.us_memory


def _because(cost: StepCost, opcode: str) -> str:
    """Why compute grew: evaluated again, or fewer threads at work."""
    what = printable(opcode) if opcode and opcode != "fusion" else "the producer"
    if cost.evaluations > 1.05:
        return f" because {what} is evaluated {cost.evaluations:.3g} times"
    if cost.consumers > 1 or not cost.leaves:
        return f" because {what} is computed here, too"
    before, after = _busy(cost.producer), _busy(cost.fused)
    return f" because {what} runs on {after:,} threads, not {before:,}" if after < before else ""


def _wider(cost: StepCost) -> str:
    before, after = _busy(cost.producer), _busy(cost.fused)
    return f" ({after:,} threads work on it, not {before:,})" if after > before else ""


def _busy(k: KernelTime) -> int:
    return k.blocks * k.threads


def tie_text(tied_with: Sequence[str]) -> str:
    """`a tie: XLA may have taken add.3 first`."""
    names = ", ".join(printable(n) for n in tied_with[:2])
    more = f" or {len(tied_with) - 2} others" if len(tied_with) > 2 else ""
    return f"a tie: XLA may have taken {names}{more} first"


def worth_text(d: PairDetail) -> str:
    """The two sums and their difference: what the queue sorts by."""
    users = "its user" if d.users == 1 else f"all its {d.users} users"
    verb = "saves" if d.us_saved >= 0 else "costs"
    return (
        f"unfused {us_text(d.us_unfused)}, fused into {users} {us_text(d.us_fused)}:"
        f" {verb} {us_text(abs(d.us_saved))} (launches included)"
    )


_UNITS = {
    "memory_bandwidth": ("memory bandwidth", "B/s"),
    "l2_cache_size": ("an L2 cache", "B"),
    "core_count": ("cores", ""),
    "clock_rate_ghz": ("a clock", "GHz"),
    "fpus_per_core": ("FPUs per core", ""),
}


def flip_text(f: Flip) -> str:
    """`with memory bandwidth of 1.23 TB/s or less (now 3.35 TB/s)`."""
    what, unit = _UNITS.get(f.number, (f.number, ""))
    beyond = "or more" if f.value > f.now else "or less"
    if unit == "GHz":
        return f"with {what} of {f.value:.3g} GHz {beyond} (now {f.now:.3g} GHz)"
    if not unit:
        return f"with {f.value:,.0f} {what} {beyond} (now {f.now:,.0f})"
    return f"with {what} of {quantity(f.value, unit)} {beyond} (now {quantity(f.now, unit)})"
