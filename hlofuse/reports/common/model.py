"""Data that the reports of several questions share, and as JSON values; the schema is in docs/json.md."""

from collections.abc import Iterable

from hlofuse.account import Totals
from hlofuse.analysis.cost import Cost
from hlofuse.compilation import Counted
from hlofuse.format import fields, us_json
from hlofuse.format.paths import layer_of
from hlofuse.inputs.profile import MeasuredTime
from hlofuse.ir import Json, Record, Strings
from hlofuse.rules.catalogue import Rule
from hlofuse.trace import Figures

TRIED_UP_TO = 3_000  # Instructions of a module on which reports replay changes unasked; `what-if` does on any


class CreatedBy(Record):
    """A decision of a pass before fusion about an instruction that it created or did not include."""

    pass_name: str
    rule: Rule
    reason: str
    created: Strings  # At the input of fusion; of a refusal the producer, then the consumer
    removed: Strings = ()  # Whose place it has taken; empty for a refusal


def both_names(final: str, at_fusion: str) -> str:
    """`loop_add_fusion (fusion.3)`; one name where the two are the same."""
    return final if final == at_fusion else f"{final} ({at_fusion})"


class Place(Record):
    """An instruction as a reader finds it again: name, shape and the line of the user's program."""

    name: str
    opcode: str = ""
    shape: str = ""
    source: str | None = None  # `file:line function`, where the dump says
    op_name: str | None = None  # The framework's name of the operation
    called_from: str | None = None  # The user's own line where `source` is in an installed package
    final: str | None = None
    """XLA's final name, which a profiler shows; None where it is not known or nothing runs under one."""
    measured: MeasuredTime | None = None
    installed: bool = False  # `source` is in an installed package

    @property
    def label(self) -> str:
        """The final name, else the name at the end of fusion."""
        return self.final or self.name

    @property
    def line(self) -> str:
        """`file:line`, the user's own where the operation is an installed package's; empty if not known."""
        return (self.called_from or self.source or "").partition(" ")[0]

    @property
    def where(self) -> str:
        """The user's own line; else the scopes around the operation, or the line of an installed package."""
        own = self.called_from or (self.source and not self.installed)
        return (not own and layer_of(self.op_name)) or self.line

    @property
    def shown(self) -> str:
        """The final name, then the name at the end of fusion: `loop_add_fusion (fusion.3)`."""
        return both_names(self.label, self.name)


def lines_of(places: Iterable[Place]) -> Strings:
    """`file:line function` of each, the user's own where the operation is an installed package's."""
    return tuple(dict.fromkeys(filter(None, (p.called_from or p.source for p in places))))


class FinalKernel(Record):
    place: Place
    input_name: str | None  # Its name at the end of fusion; None for what later passes made, such as copies
    kind: str
    runs: int
    per_iteration: bool  # It is in a loop that does not tell how often it runs: `runs` counts one iteration
    bytes_accessed: int  # Bytes of one run
    us: float | None  # The time of one run in microseconds, launch included
    is_floor: bool  # `us` is a lower bound
    is_open: bool = False  # `us`, of its bytes, says nothing of its time
    measured: MeasuredTime | None = None
    in_branch: bool = False
    """It runs in a branch of a conditional only; `runs` is 0 if that is not the costliest."""


class Refusal(Record):
    """A pair that was considered and stays apart; repeats are one."""

    producer: Place
    consumer: str | None  # Under its final name; None where no consumer was asked about
    consumer_then: str | None  # Under its name when it was last refused: the name `why` finds it by, too
    rule: str | None
    reason: str | None
    figures: Figures
    steps: tuple[int, ...]  # Every step at which it was refused, for any reason; the last one settled it
    between_kernels: bool  # Both finally run as kernels: fusing would save a launch and a trip through memory
    bytes_between: int
    """Size of the value that passes between the two, as often as it does; of siblings, of what both read."""
    refused_user: str | None = None
    """The user that was asked about, where that is another: priority fusion takes all users or none."""
    kernel: str | None = None  # The final kernel that computes the producer's value, below views, if any
    consumer_final: str | None = None  # XLA's final name of the consumer, where it is known
    created_by: tuple[CreatedBy, ...] = ()
    """Decisions before fusion about the two; those about both come first."""
    us_at_stake: float | None = None
    """The saving of fusing the producer into its users, in µs of all runs; None if not estimated."""


def us_at_stake(refusals: Iterable[Refusal]) -> float | None:
    """Time that allowing them would save, each producer counted once; None if nothing is estimated. XLA would
    take in what pays and leave the rest apart. Where nothing pays it is what all would cost, less than 0."""
    names = {r.producer.name: r.us_at_stake for r in refusals if r.us_at_stake is not None}
    pays = [us for us in names.values() if us > 0]
    return sum(pays or names.values()) if names else None


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
            "modelled_us~ floor_us~ floors open_ended host_wait_us~ measured_us~",
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
        "time_kind": time_kind(k.us, k.is_floor, k.is_open),
        **measured_json(k.measured),
    }


def time_kind(us: float | None, is_floor: bool, is_open: bool = False) -> str | None:
    """`estimated`, `lower-bound`, or `not-known` of a bound that says nothing; None without a time."""
    bound = "not-known" if is_open else "lower-bound"
    return None if us is None else bound if is_floor else "estimated"


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
