"""The parts of a verdict: plain data. Among them what a TPU's tiled layouts cost: padding that kernels move,
copies that only change a layout, products that its matrix units compute in several passes."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from hlofuse.account import Account, Totals
from hlofuse.account.bound import FusionFloor, ProgramFloor
from hlofuse.account.floor import products
from hlofuse.account.functions import Functions
from hlofuse.account.measured import Measured
from hlofuse.account.tpu import mxu_passes
from hlofuse.account.traffic import border_bytes
from hlofuse.analysis.kernels import inside
from hlofuse.cost.cpu.device import CpuDevice
from hlofuse.format import bytes_text, plural, printable, us_text
from hlofuse.ir import Instruction, Json, Record, Shape, Strings
from hlofuse.ir.shape import COMBINED
from hlofuse.reports.advice.recipe import Finding, Recipe
from hlofuse.reports.common.model import Place
from hlofuse.reports.explain.model import HotKernel
from hlofuse.reports.whatif.model import Trial
from .collectives import CollectiveRow

_SMALL = 0.03  # the part of the time that may lack an estimate where a verdict is about all of it
MEASURED = "measured"  # `Trial.how` of a change that was run
SuggestionKind = Literal["code", "flag", "report"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    kind: SuggestionKind
    text: str
    rule: str  # The code of the rule that it avoids; empty for none
    sources: Strings  # The lines to edit, `file:line function`, each once; none without lines, and for flags
    places: int  # In how many places of the module; 0 where it is about the module as a whole
    trial: Trial
    recipe: str = ""  # The page in docs/recipes
    flag: str = ""  # For a flag: as it is given in XLA_FLAGS
    touched: float = 0.0  # Share of the time of the kernels that a change without a gain to state changes
    is_forward_alone: bool = False  # Module has the gradient of these lines, which the trial leaves as it was
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
    in_command_buffers: int | None = None  # Launches in command buffers; None if unknown, and for other kinds
    host_wait_us: float = 0.0  # The part of `us` of launches in which a GPU waits for the host, at least
    is_open: bool = False  # Some of it may take any time


_LANES = 128
_VIEWS = ("bitcast", "get-tuple-element", "tuple")
_ROUNDS = 15  # of a hash: of 20, XLA works out those of known bits
_LEAST = 0.02  # the part of all bytes from which padding or copies are worth a line
_Row = Json


class Tiles(Record):
    share: float  # The part of padding in all bytes that kernels read and write
    arrays: list[_Row]
    """`name`, `source`, `shape`, `padded` (`100 → 128 lanes`), `share` of elements, `bytes` of all runs."""
    copies: list[_Row]  # `name`, `source` (or the reader's), `layouts`, `reader` and `bytes`; most first
    products: list[_Row]
    """`name`, `source`, `passes` of the matrix units if several, `time_us` of all runs; slowest first."""
    random: list[_Row]
    """Kernels that hash counters: `name`, `source` and `time_us` of all runs; slowest first."""


def tiles_of(account: Account, place_of: Callable[[Instruction], Place]) -> Tiles:
    """The padding and the layout copies of a final module of XLA:TPU."""
    padding: Counter[Instruction] = Counter()
    copies = []
    precise, random = [], list[_Row]()
    total = account.totals.us or 0.0
    for row in account.rows:
        x = row.instruction
        passes, us = max((mxu_passes(p) for _, p in products(x)), default=1), row.total_us
        if passes > 1 and (us is None or us > _LEAST * total):
            precise.append(_named(place_of(x)) | {"passes": passes, "time_us": us})
        if us and us > _LEAST * total and sum(map(_is_round, inside(x))) >= _ROUNDS:
            random.append(_named(place_of(x)) | {"time_us": us})
        reads, writes = border_bytes(x)
        moves = dict(reads)
        if x.is_array:
            moves[x] = sum(writes.values())
        for value, size in moves.items():
            share = padding_share(value.shape)
            padding[value] += round(size * row.runs * share / (1 + share))
        if x.opcode == "copy" and x.minor_to_major != x.operand.minor_to_major:
            shapes = x.operand.shape, x.shape
            layouts = [f"{{{','.join(map(str, s.minor_to_major))}}}" for s in shapes]
            reader, copied = _reader(x), _named(place_of(x))
            copied["source"] = copied["source"] or (reader and _named(place_of(reader))["source"])
            moved = row.cost.bytes_accessed * row.runs
            copies.append(copied | {"layouts": layouts, "reader": reader and reader.name, "bytes": moved})
    arrays = [
        _named(place_of(x))
        | {"shape": x.shape.text_without_layout, "padded": _lengthened(x.shape)}
        | {"share": padding_share(x.shape), "bytes": size}
        for x, size in padding.most_common()
        if size
    ]
    share = padding.total() / (account.totals.cost.bytes_accessed or 1)
    copies.sort(key=lambda c: -c["bytes"])
    precise.sort(key=lambda p: -(p["time_us"] or p["passes"]))
    return Tiles(share, arrays, copies, precise, sorted(random, key=lambda r: -r["time_us"]))


def _is_round(x: Instruction) -> bool:
    """True for bits that are combined with others rotated by some places, as a generator does 20 times."""
    rotated = (o for o in x.operands if x.opcode == "xor" and o.opcode == "or")
    return any({i.opcode for i in o.operands} == {"shift-left", "shift-right-logical"} for o in rotated)


def _reader(x: Instruction) -> Instruction | None:
    """The first instruction that reads a value, also through views and tuples; None for a result."""
    user = x.user if x.users else None
    return _reader(user) if user is not None and user.opcode in _VIEWS else user


def _named(place: Place) -> _Row:
    return {"name": place.name, "source": place.line or None}


def padding_share(shape: Shape) -> float:
    """Elements that tiles add, relative to those of the array; 0 for a scalar, a tuple and an empty array."""
    count = shape.element_count if shape.is_array else 0
    return shape.padded_count / count - 1 if count > 1 else 0.0


def _lengthened(shape: Shape) -> str:
    tile = shape.layout.tiles[0] if shape.layout is not None and shape.layout.tiles else ()
    sizes = [shape.dimensions[d] for d in shape.minor_to_major]
    found = []
    for place, (size, length) in enumerate(zip(sizes, reversed(tile), strict=False)):
        if length != COMBINED and size % length:
            kind = "sublanes" if place else "elements" if length % _LANES else "lanes"
            found.append(f"{size:,} → {-(-size // length) * length:,} {kind}")
    return ", ".join(found)


def tile_lines(t: Tiles, of: Totals) -> Iterator[str]:
    """The padding with its worst array, the largest copy that only changes a layout, products in several
    passes, and random bits; of these totals."""
    moved = of.cost.bytes_accessed
    if t.share > _LEAST:
        a = t.arrays[0]
        part = f"{100 * t.share:.0f}% of bytes"
        yield f"Padding: {part}; most{_where(a)}: {a['shape']}, {a['padded']} (+{100 * a['share']:,.0f}%)"
    copied = sum(c["bytes"] for c in t.copies)
    if copied > _LEAST * moved:
        c, total = t.copies[0], bytes_text(copied)
        wanted = f"{' → '.join(c['layouts'])} for {printable(c['reader'] or 'the result')}"
        yield f"Layout copies: {len(t.copies):,}, {total}; most{_where(c)}: {wanted}"
    if t.products:
        p, count = t.products[0], plural(len(t.products), "product")
        less = "high 3, default 1" if p["passes"] > 3 else "default 1"
        yield f"Precision: {count} in {p['passes']} MXU passes ({less}); most{_where(p)}"
    if t.random and of.us:
        us, kernels = sum(r["time_us"] for r in t.random), plural(len(t.random), "kernel")
        time = f"{us_text(us)} ({100 * us / of.us:.0f}%), most{_where(t.random[0])}"
        yield f"Random bits: {kernels}, {time}; jax.random.key(seed, impl='rbg') may take less (other bits)"


def _where(row: _Row) -> str:
    return f" at {printable(row['source'] or row['name'])}"


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
    compile_time: Strings = ()  # Sentences about constants that XLA evaluates for long while it compiles
    cpu: CpuDevice | None = None  # The CPU that the times are estimated for; None on others
    collectives: tuple[CollectiveRow, ...] = ()  # Those that take longest, or send most, first
    functions: Functions = Functions()  # The shares of the user's functions
    compiled: int = 0  # Changes that XLA compiled
    host_reads_conditions: bool = False
    """Each iteration of a loop without a trip count waits until the host has its condition."""
    counts_to_an_argument: bool = False  # All such loops could have a trip count
    awaited_elements: int = 0  # A loop runs until the last of so many is done
    discarded: tuple[float, Place] | None = None
    """Microseconds of kernels whose new arrays one condition may discard, and the first; None for little."""
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
        estimated = t.us is not None and not t.open_ended and (t.floor_us or 0.0) <= _SMALL * t.us
        return estimated and not loops

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
