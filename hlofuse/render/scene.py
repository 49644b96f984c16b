"""A picture before DOT: panels of boxes, frames and arrows."""

import unicodedata
from collections.abc import Iterable, Mapping

from msgspec import Struct

from hlofuse.account import Account, Totals
from hlofuse.compilation import Compilation
from hlofuse.ir import HlofuseError, Instruction, Module, Record, Strings, grouped, packaged
from hlofuse.ir.names import names_in

TABLES = packaged(__file__, "palette")
VIEWS = ("before", "after", "both")
MAX_NODES = 250  # The limit of boxes a side, for readers and for the speed of `dot`
HARD_LIMIT = 1_500  # The maximum of boxes in one picture: `dot` takes minutes with more


class Options(Record):
    max_nodes: int = MAX_NODES
    focus: Strings = ()
    radius: int = 2
    open: Strings = ()
    legend: bool = True
    final_names: Mapping[str, str] = {}  # Names of kernels in a profiler, where unlike those after fusion
    times: Mapping[str, str] = {}  # Times of kernels by their names after fusion, with their kind

    def __post_init__(self) -> None:
        if not 1 <= self.max_nodes <= HARD_LIMIT:
            raise HlofuseError(f"max-nodes must lie between 1 and {HARD_LIMIT:,}, not {self.max_nodes:,}")
        if self.radius < 0:
            raise HlofuseError(f"radius must not be negative, but is {self.radius}")


class ModulePair(Record):
    before: Module
    after: Module
    kernels: Mapping[Instruction, tuple[Instruction, ...]]
    """For instructions of `before`: the instructions of `after` that compute them."""
    title: str = ""  # The step between the two: `gpu fusion on h100_sxm`, `2 merged`
    notes: Mapping[Instruction, str] = {}  # Short labels of instructions on either side: `split`, `new`…
    same_names: bool = False
    totals: tuple[Totals, Totals] | None = None
    """The totals of the two, where they are counted already; of a replay, of its final module."""


def _inside(instruction: Instruction) -> Iterable[str]:
    body = instruction.fused_computation if instruction.is_fusion and instruction.called else ()
    return dict.fromkeys(name for i in (*body, instruction) for name in names_in(i.origin))


def pair_of(replay: Compilation) -> ModulePair:
    """The modules before and after fusion, and the kernels that hold each instruction."""
    title = f"{replay.target} fusion" + (f" on {replay.device}" if replay.device else "")
    found = grouped((name, i) for i in replay.after.instructions() for name in _inside(i))
    kernels = {i: tuple(found[i.name]) for i in replay.before.instructions() if i.name in found}
    final = Account(replay.final, backend=replay.config.build.backend).totals
    totals = Account(replay.before).totals, final
    return ModulePair(replay.before, replay.after, kernels, title, same_names=True, totals=totals)


class Box(Struct):
    """One box: an instruction, a closed fusion, a collapsed part, a note about hidden neighbours."""

    key: str  # Unique in the scene, harmless in any format: `n12`
    style: str  # A key of `palette.STYLES`
    title: str  # The opcode, in bold
    aside: str = ""  # Follows the title in plain type
    lines: list[str] = []  # Smaller, below the title
    tooltip: list[str] = []
    kernels: str = ""  # Numbers of its kernels: `K3`
    marked: bool = False  # True for the focus of the picture
    note: str = ""  # A short label: `removed`
    name: str = ""  # The full name of its instruction; empty without one


class Outline(Box):
    """A fusion drawn open, or the operations of a future kernel: boxes with a line around them. Its style is
    the fusion's kind, kLoop, kInput…; empty for a future kernel."""

    boxes: list[Box] = []


class Arrow(Struct):
    """A value from `source_box` to `head` (keys of boxes)."""

    source_box: str
    head: str
    bytes: int = 0
    values: int = 1
    inside: bool = False  # True within one kernel: the value never reaches memory
    control: bool = False  # True for an ordering without a value
    tooltip: list[str] = []
    key: str = ""  # Its id in the picture, if any


class Panel(Struct):
    key: str
    title: str
    boxes: list[Box] = []  # Boxes outside every frame
    outlines: list[Outline] = []
    arrows: list[Arrow] = []

    def all_boxes(self) -> list[Box]:
        return [*self.boxes, *(b for f in self.outlines for b in f.boxes)]


class Scene(Struct):
    title: str
    lines: list[str] = []
    caption: list[str] = []  # The caller's lines, before all others; the first is emphasized
    notices: list[str] = []
    panels: list[Panel] = []
    columns: int = 1  # Panels to a row
    legend: bool = True


SMALL = 8.5  # The smallest font size, in points: 11.3 pixels at a picture's natural size

# Graphviz inflates every shape that is no box to fit the text into its inner circle; sizing them here
# keeps trapezia and hexagons as small as their text allows, and the same wherever they are drawn.

_BOLD = 1.07


def text_width(text: str, size: float, bold: bool = False) -> float:
    """The width of a line of text in a font of that size."""
    units = 0
    for c in text:
        if " " <= c <= "~":
            units += TABLES["widths"][ord(c) - 32]
        else:
            units += 1000 if unicodedata.east_asian_width(c) in "WF" else 600
    return units * size / 1000 * (_BOLD if bold else 1.0)
