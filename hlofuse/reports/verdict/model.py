"""The parts of a verdict: plain data."""

from dataclasses import dataclass, field
from typing import Literal

from hlofuse.account import Totals
from hlofuse.account.bound import FusionFloor, ProgramFloor
from hlofuse.account.functions import Functions
from hlofuse.account.measured import Measured
from hlofuse.cost.cpu.device import CpuDevice
from hlofuse.ir.record import Record
from hlofuse.reports.advice.recipe import Finding, Recipe
from hlofuse.reports.explain.model import HotKernel
from hlofuse.reports.whatif.model import Trial
from .collectives import CollectiveRow
from .tiles import Tiles

_SMALL = 0.03  # the part of the time that may lack an estimate where a verdict is about all of it
MEASURED = "measured"  # `Trial.how` of a change that was run
SuggestionKind = Literal["code", "flag", "report"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    kind: SuggestionKind
    text: str
    rule: str  # The code of the rule that it avoids; empty for none
    sources: tuple[str, ...]
    """The lines to edit, `file:line function`, each once; none where the dump has no lines, and for flags."""
    places: int  # In how many places of the module; 0 where it is about the module as a whole
    trial: Trial
    recipe: str = ""  # The page in docs/recipes
    flag: str = ""  # For a flag: as it is given in XLA_FLAGS
    touched: float = 0.0
    """The share of the time of the kernels that a change changes which has no gain to state."""
    is_forward_alone: bool = False
    """The module holds the gradient of these lines, and the trial leaves it as it was."""
    change: tuple[Recipe, tuple[Finding, ...]] | None = field(default=None, repr=False, compare=False)
    """A change at the input of fusion; None for others."""
    touches_unknown: bool = False  # It also changes kernels of which no time is known


class Share(Record):
    kind: str
    """`fused kernels`, one of `account.bound.WORK`, `copies`, `collectives`, `host`, `launches` or `call`."""
    count: int
    us: float | None  # Without launch overhead, which is a kind of its own; None without times
    bytes_accessed: int
    is_floor: bool = False  # `us` holds lower bounds
    measured_us: float | None = None  # From a profile; None without one, and for launches
    in_command_buffers: int | None = None
    """Launches in command buffers; None where it is not known, and for other kinds."""
    host_wait_us: float = 0.0  # The part of `us` of launches in which a GPU waits for the host, at least


class Verdict(Record):
    """The answer: what runs, where the time goes, what is left to gain, and what to change."""

    totals: Totals
    shares: tuple[Share, ...]  # Greatest first
    floor: FusionFloor  # The minimum over all choices of fusions, everything else unchanged
    program: ProgramFloor | None
    """The minimum of any form of the program; None where a change that was tried goes below it."""
    hot_kernels: tuple[HotKernel, ...]  # Slowest first; without times by bytes
    suggestions: tuple[Suggestion, ...] = ()
    """Greatest gain first, then gains to be measured, then limitations of XLA; each gains something."""
    best: Trial | None = None
    """The best of all replays, those of rules that are no program's to change among them; None for none."""
    best_of: str = ""  # The change of the best replay: `without PF009`, or the suggestion's text
    replays: int = 0
    is_ranked: bool = False  # False for a module so large that rules were not replayed one by one
    untried: tuple[Suggestion, ...] = ()
    """Recipes whose symptom is there, and of which nothing says what they gain here, most touched first."""
    slower: tuple[Suggestion, ...] = ()  # Changes that save memory and take longer
    rounding: tuple[Suggestion, ...] = ()  # Changes of code that save time and lose digits
    measured: Measured | None = None  # The profile's times of the program; None without a profile
    tiles: Tiles | None = None  # Padding and layout copies; of a TPU's final module
    time_source: str = ""  # The source of estimated times where it is not XLA's model with launches
    is_replayed: bool = True  # False for a module that is fused already: nothing was tried
    together: tuple[tuple[int, ...], Trial] | None = None
    """The suggestions, from 1, that still help after those before them, and what all gain; None for one."""
    compile_time: tuple[str, ...] = ()
    """Sentences about constants that XLA evaluates for long while it compiles."""
    cpu: CpuDevice | None = None  # The CPU that the times are estimated for; None on others
    collectives: tuple[CollectiveRow, ...] = ()  # Those that take longest, or send most, first
    functions: Functions = Functions()  # The shares of the user's functions
    compiled: int = 0  # Changes that XLA compiled
    host_reads_conditions: bool = False
    """Each iteration of a loop without a trip count waits until the host has its condition."""
    counts_to_an_argument: bool = False  # All such loops could have a trip count
    awaited_elements: int = 0  # A loop runs until the last of so many is done
    skipped: int = 0  # Trials that were left out because those before them took long
    has_unoptimized: bool = True  # The module before optimizations, in which most recipes are tried
    not_proved: str = ""  # Why XLA could not compile changes that were to be; empty without a reason

    @property
    def found(self) -> Suggestion | None:
        """The best change of code or flags; None for none, and where only a measurement would tell."""
        able = (s for s in self.suggestions if s.kind != "report" and not s.trial.is_to_be_measured)
        return next(able, None)

    @property
    def measured_whole(self) -> float:
        """Measured microseconds that parts are shares of: those of a run, or of all kernels if more."""
        kernels = sum(s.measured_us or 0.0 for s in self.shares)
        return max(self.totals.measured_us or 0.0, kernels)

    @property
    def covers_all(self) -> bool:
        """Every kernel that matters has an estimated time, and no loop launches kernels."""
        t = self.totals
        loops = t.launches != t.kernels or t.per_iteration
        return t.us is not None and not loops and (t.floor_us or 0.0) <= _SMALL * t.us

    @property
    def scaled_us_left(self) -> float | None:
        """Measured microseconds of fused kernels above their floor, as both scale; None without times."""
        of = {s.kind: s for s in self.shares}
        fused, launches = of.get("fused kernels"), of.get("launches")
        if fused is None or launches is None or fused.measured_us is None or not fused.us:
            return None
        if not self.totals.us or not self.floor.us:
            return None
        started = (launches.us or 0.0) - launches.host_wait_us
        modelled = fused.us + started * fused.count / launches.count
        waits = launches.host_wait_us - self.floor.host_wait_us  # in no kernel of a profile
        return fused.measured_us * max(self.totals.us - self.floor.us - waits, 0.0) / modelled
