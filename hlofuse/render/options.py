"""Options of a picture, and the two modules that it may show."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hlofuse.account import Account, Totals
from hlofuse.compilation import Compilation
from hlofuse.ir import HlofuseError, Instruction, Module
from hlofuse.ir.grouping import grouped
from hlofuse.ir.origin import names_in

VIEWS = ("before", "after", "both")
MAX_NODES = 250
"""The limit of boxes a side, for readers and for the speed of `dot`."""

HARD_LIMIT = 1_500
"""The maximum of boxes in one picture: `dot` takes minutes with more."""


@dataclass(frozen=True, slots=True)
class Options:
    max_nodes: int = MAX_NODES
    focus: str | None = None
    radius: int = 2
    open: tuple[str, ...] = ()
    collapse: tuple[str, ...] = ()
    legend: bool = True
    final_names: Mapping[str, str] = field(default_factory=dict)
    """Names of kernels in a profiler, where they differ from those after fusion."""

    def __post_init__(self) -> None:
        if not 1 <= self.max_nodes <= HARD_LIMIT:
            raise HlofuseError(f"max-nodes must lie between 1 and {HARD_LIMIT:,}, not {self.max_nodes:,}")
        if self.radius < 0:
            raise HlofuseError(f"radius must not be negative, but is {self.radius}")


@dataclass(frozen=True, slots=True)
class ModulePair:
    """The two modules of a picture."""

    before: Module
    after: Module
    kernels: Mapping[Instruction, tuple[Instruction, ...]]
    """For instructions of `before`: the instructions of `after` that compute them."""
    title: str = ""
    """The step between the two: `gpu fusion on h100_sxm`, `2 merged`."""
    notes: Mapping[Instruction, str] = field(default_factory=dict)
    """Short labels of instructions on either side: `split`, `new`…"""
    same_names: bool = False
    totals: tuple[Totals, Totals] | None = None
    """The totals of the two, where they are counted already; of a replay, of its final module."""


def _inside(instruction: Instruction) -> Iterable[str]:
    """The instructions of the input that it comes from, or holds."""
    body = instruction.fused_computation if instruction.opcode == "fusion" and instruction.called else ()
    return dict.fromkeys(name for i in (*body, instruction) for name in names_in(i.origin))


def pair_of(replay: Compilation) -> ModulePair:
    """The two ends of a replay."""
    title = f"{replay.target} fusion" + (f" on {replay.device}" if replay.device else "")
    found = grouped((name, i) for i in replay.after.instructions() for name in _inside(i))
    kernels = {i: tuple(found[i.name]) for i in replay.before.instructions() if i.name in found}
    final = Account(replay.final, backend=replay.config.build.backend).totals
    totals = Account(replay.before).totals, final
    return ModulePair(replay.before, replay.after, kernels, title, same_names=True, totals=totals)
