"""Places and figures as JSON values; the schema is in docs/json.md."""

from hlofuse.account import Totals
from hlofuse.analysis.cost import Cost
from hlofuse.compilation import Counted
from hlofuse.format.fields import fields, us_json
from hlofuse.inputs.profile import MeasuredTime
from hlofuse.ir.record import Json
from .model import CreatedBy, FinalKernel, Place, Refusal


def place_json(p: Place) -> Json:
    """An instruction under its final name and that at the end of fusion, and where it comes from."""
    return {
        "name": p.label,
        **fields(p, "input_name=name opcode shape source op_name"),
        **(measured_json(p.measured) if p.measured is not None else {}),
    }


def totals_json(t: Totals, counted: Counted | None = None) -> Json:
    """A module as a whole: what is launched, every launch counted. `counted`: whose final module it is."""
    estimated = t.modelled_us if t.measured_us is None else None
    unknown = t.unknown if t.us is not None else t.kernels
    return {
        **fields(
            t,
            "kernels launches bytes=cost.bytes_accessed flop=cost.flops time_us=us~ "
            "modelled_us~ floor_us~ floors host_wait_us~ measured_us~",
        ),
        "estimated_us": us_json(estimated),
        "unknown": unknown if t.measured_us is None else None,
        **fields(t, "exposed_collectives_us~"),
        "exposed_collectives_kind": time_kind(t.exposed_collectives_us, t.exposed_is_floor),
        "copies": {"count": t.copies, "bytes": t.copy_bytes},
        **fields(t, "temporary_bytes=peak_temporary_bytes peak_temporary_bytes memory_bytes devices"),
        **({"from": counted} if counted is not None else {}),
        "cost": cost_json(t.cost),
    }


def launch_json(k: FinalKernel) -> Json:
    """A launched kernel; `time_us` and `bytes` are of one run, of `runs` runs."""
    return {
        **fields(
            k,
            "name=place.label input_name source=place.source op_name=place.op_name kind runs per_iteration "
            "bytes=bytes_accessed time_us=us~ floor=is_floor",
        ),
        "time_kind": time_kind(k.us, k.is_floor),
        **measured_json(k.measured),
    }


def time_kind(us: float | None, is_floor: bool) -> str | None:
    """`estimated` or `lower-bound`; None without a time."""
    return None if us is None else "lower-bound" if is_floor else "estimated"


def measured_json(time: MeasuredTime | None) -> Json:
    """`measured_us` of one launch, None without a profile, and `measured` with the figures it rests on."""
    spec = "calls total_us~ median_us~ min_us~ max_us~ lines"
    return {
        "measured_us": us_json(time.us) if time is not None else None,
        "measured": fields(time, spec) if time is not None else None,
    }


def created_by_json(m: CreatedBy) -> Json:
    """A rewrite before fusion; `flag` leaves its pass out."""
    return fields(m, "pass=pass_name rule=rule.code flag=rule.flag? reason from=removed about=created")


def refusal_json(r: Refusal) -> Json:
    """A final verdict against a pair."""
    return {
        "producer": place_json(r.producer),
        "consumer": r.consumer_final or r.consumer,
        **fields(
            r,
            "consumer_input_name=consumer consumer_then said_of=refused_user rule reason "
            "figures steps between_kernels bytes_between",
        ),
        "made_by": created_by_json(r.created_by[0]) if r.created_by else None,
        "us_at_stake": us_json(r.us_at_stake),
    }


def cost_json(cost: Cost) -> Json:
    """A cost as an object; `unknown` counts custom calls left out of the figures."""
    return fields(cost, "flops transcendentals bytes_read bytes_written bytes_accessed unknown")
