"""Data that the reports of several questions share."""

from collections.abc import Iterable

from hlofuse.inputs.profile import MeasuredTime
from hlofuse.ir.record import Record
from hlofuse.rules.catalogue import Rule
from hlofuse.trace import Figures

TRIED_UP_TO = 3_000
"""Instructions of a module on which reports replay changes unasked; `what-if` tries rules on any."""


class CreatedBy(Record):
    """A decision of a pass before fusion about an instruction that it created or did not include."""

    pass_name: str
    rule: Rule
    reason: str
    created: tuple[str, ...]  # At the input of fusion; of a refusal the producer, then the consumer
    removed: tuple[str, ...] = ()  # Whose place it has taken; empty for a refusal


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

    @property
    def label(self) -> str:
        """The final name, else the name at the end of fusion."""
        return self.final or self.name

    @property
    def line(self) -> str:
        """`file:line`, the user's own where the operation is an installed package's; empty if not known."""
        return (self.called_from or self.source or "").partition(" ")[0]

    @property
    def shown(self) -> str:
        """The final name, then the name at the end of fusion: `loop_add_fusion (fusion.3)`."""
        return both_names(self.label, self.name)


def lines_of(places: Iterable[Place]) -> tuple[str, ...]:
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
    steps: tuple[int, ...]
    """Every step at which it was refused, for this or another reason; the last one settled it."""
    between_kernels: bool
    """Both finally run as kernels: a launch and a trip through memory that fusing would save."""
    bytes_between: int
    """Size of the value that passes between the two, as often as it does; of siblings, of what both read."""
    refused_user: str | None = None
    """The user that was asked about, where that is another: priority fusion takes all users or none."""
    kernel: str | None = None
    """The final kernel that computes the producer's value, below views; None where none does."""
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
