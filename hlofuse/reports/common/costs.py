"""Times and traffic of XLA's model, in words and as JSON values (docs/json.md)."""

from typing import Any

from hlofuse.account import KernelTime, PairDetail, ReadTerm, StepCost
from hlofuse.account.flips import Flip
from hlofuse.format import bytes_text, enumeration, fields, plural, printable, quantity, us_json, us_text
from hlofuse.ir import Json

_NOTABLE = 0.005  # microseconds: less than half of the last digit shown is left out
_UNITS = {
    "memory_bandwidth": ("memory bandwidth", "B/s"),
    "l2_cache_size": ("an L2 cache", "B"),
    "core_count": ("cores", ""),
    "clock_rate_ghz": ("a clock", "GHz"),
    "fpus_per_core": ("FPUs per core", ""),
}


def limit_of(k: KernelTime, us: float) -> str:
    """`memory-bound`, `launch-bound`…, with `, uncoalesced reads`; empty without terms. `us`: one launch."""
    if k.us < us / 2:
        return "launch-bound"
    if not k.us_memory and not k.us_compute:
        return k.emitter if k.emitter == "whole tiles" else ""
    return f"{k.bound_by}-bound" + ("" if k.coalesced or k.tile_sizes else ", uncoalesced reads")


def roofline(k: KernelTime) -> str:
    """Its time without its launch, what bounds it and by how much, how it is launched, how it reads."""
    more, less = max(k.us_memory, k.us_compute), min(k.us_memory, k.us_compute)
    factor = more / less if less > _NOTABLE else 0.0
    times = f" {factor:,.{int(factor < 9.95)}f}×" if factor else ""
    launch = f", {k.blocks:,} × {k.threads:,} threads, {_access(k)}" if k.blocks else ""
    if k.us_floor:
        by_model = f"XLA's model, which omits some of the traffic, gives {us_text(k.us)}"
        return f"at least {us_text(k.us_floor)} + launch ({by_model}); {printable(k.emitter)}{launch}"
    return (
        f"{us_text(k.us)} + launch, {k.bound_by}-bound{times} (compute {us_text(k.us_compute)}, memory"
        f" {us_text(k.us_memory)}); {printable(k.emitter)}{launch}"
    )


def _access(k: KernelTime) -> str:
    """The access pattern: Triton reads tiles; others read with or without coalescing."""
    if k.tile_sizes:
        return f"tile {_tiles(k)}"
    if k.emitter == "triton":
        return "by tiles"
    return "coalesced" if k.coalesced else "uncoalesced reads"


def why_saves(cost: StepCost, producer_opcode: str) -> str:
    """The gains and costs of a fusion in order of weight, in one line."""
    gains = []
    pays = []
    if cost.leaves:
        shared = f" shared by {cost.consumers}" if cost.consumers > 1 else ""
        gains.append((cost.us_launch / cost.consumers, f"one launch ({us_text(cost.us_launch)}){shared}"))
    own = cost.producer.us_memory / cost.consumers if cost.leaves else 0.0
    memory = own + cost.consumer.us_memory - cost.fused.us_memory
    if cost.bytes_less > 0 and memory > -_NOTABLE:
        gains.append((memory, f"{bytes_text(cost.bytes_less)} less traffic"))
    elif cost.bytes_less < 0:
        pays.append((-memory, f"{bytes_text(-cost.bytes_less)} more traffic"))
    elif memory < -_NOTABLE:
        pays.append((-memory, f"reads take {us_text(-memory)}"))
    if cost.consumer.coalesced and not cost.fused.coalesced:
        pays.append((0.0, "reads become uncoalesced"))
    elif cost.fused.coalesced and not cost.consumer.coalesced:
        gains.append((0.0, "reads become coalesced"))
    more = cost.us_compute_more
    if more > _NOTABLE:
        pays.append((more, f"compute grows by {us_text(more)}{_because(cost, producer_opcode)}"))
    elif more < -_NOTABLE:
        gains.append((-more, f"{us_text(-more)} less compute{_wider(cost)}"))
    reported = [[text for _, text in sorted(found, key=lambda pair: -pair[0])] for found in (gains, pays)]
    return "; ".join(filter(None, (enumeration(reported[0]) or "nothing", ", ".join(reported[1]))))


def _because(cost: StepCost, opcode: str) -> str:
    """Why compute grew: evaluated again, or fewer threads at work."""
    what = printable(opcode) if opcode and opcode != "fusion" else "the producer"
    if cost.evaluations > 1.05:
        times = f"{cost.evaluations:,.0f}" if cost.evaluations >= 1000 else f"{cost.evaluations:.3g}"
        return f" because {what} is computed {times} times"
    if cost.consumers > 1 or not cost.leaves:
        return f" because {what} is also computed here"
    before, after = _busy(cost.producer), _busy(cost.fused)
    return (
        (f" because {what} runs on {plural(after, 'thread')} instead of {before:,}") if after < before else ""
    )


def _wider(cost: StepCost) -> str:
    before, after = _busy(cost.producer), _busy(cost.fused)
    return f" ({after:,} threads instead of {before:,})" if after > before else ""


def _busy(k: KernelTime) -> int:
    return k.blocks * k.threads


def worth_text(d: PairDetail) -> str:
    """The two sums and their difference: what the queue sorts by."""
    users = "its user" if d.users == 1 else f"all its {d.users} users"
    verb = "saves" if d.us_saved >= 0 else "costs"
    return (
        f"unfused {us_text(d.us_unfused)}, fused into {users} {us_text(d.us_fused)}:"
        f" {verb} {us_text(abs(d.us_saved))} (launches included)"
    )


def flip_text(f: Flip) -> str:
    """`with memory bandwidth of 1.23 TB/s or less (now 3.35 TB/s)`."""
    what, unit = _UNITS.get(f.number, (f.number, ""))
    beyond = "or more" if f.value > f.now else "or less"
    value, now = number_text(f.number, f.value), number_text(f.number, f.now)
    return f"with {f'{what} of {value}' if unit else f'{value} {what}'} {beyond} (now {now})"


def number_text(number: str, value: Any) -> str:
    """A number of a device as people read it: `3.35 TB/s`."""
    unit = _UNITS.get(number, ("", ""))[1]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return printable(".".join(map(str, value)) if isinstance(value, tuple) else str(value))
    if unit == "GHz":
        return f"{value:.3g} GHz"
    return quantity(value, unit) if unit else f"{value:,.10g}"


def turning_text(d: PairDetail, *, forbidden: bool) -> str:
    """The device number that would change the decision; empty for none."""
    if not d.flips:
        return ""
    effect = "pay" if d.us_saved < 0 else "cost time" if forbidden else "no longer pay off"
    return f"fusing them would {effect} {' or '.join(flip_text(f) for f in d.flips[:3])}"


def cost_heading(*, forbidden: bool) -> str:
    """Whose figures these are, and what for."""
    return "by XLA's cost model" + (" if the rule allowed it" if forbidden else "")


def choice_text(k: KernelTime) -> str:
    """`tile 1×1×32×64 is the fastest of 196 tilings`; empty where there are no tiles or was no choice."""
    if not k.tilings:
        return ""
    return f"fused: tile {_tiles(k)}, the fastest of {k.tilings:,} tilings"


def _tiles(k: KernelTime) -> str:
    return " and ".join("×".join(map(str, t)) or "1" for t in dict.fromkeys(k.tile_sizes))


def share_text(r: ReadTerm) -> str:
    """`at 50 % of the bandwidth`; empty where all of what is fetched is used."""
    return f"at {100 * r.share:.3g}% of the bandwidth" if r.share < 0.995 and r.us > _NOTABLE else ""


def kernel_json(k: KernelTime | None) -> Json | None:
    if k is None:
        return None
    return {
        **fields(
            k,
            "us~ us_memory~ us_compute~ bound_by bytes_read bytes_written flops emitter blocks threads"
            " coalesced",
        ),
        **fields(k, "tile_sizes", list),
        "tilings": k.tilings,
    }


def step_json(c: StepCost | None) -> Json | None:
    """The estimates of one fusion."""
    if c is None:
        return None
    return {
        **fields(c, "us_saved~ bytes_less us_compute_more~ consumers producer_leaves=leaves"),
        **fields(c, "producer consumer fused", kernel_json),
    }


def detail_json(d: PairDetail | None) -> Json | None:
    if d is None:
        return None
    return {
        **fields(d, "us_unfused~ us_fused~ users"),
        "pair": step_json(d.cost),
        **fields(d, "consumer_reads fused_reads", _read),
        "flips": [fields(f, "number now value") for f in d.flips],
        "remarks": list(d.notes),
    }


def _read(r: ReadTerm) -> Json:
    return {
        **fields(r, "operand shape bytes=size bytes_read=read"),
        "bandwidth_share": round(r.share, 4),
        "us": us_json(r.us),
    }
