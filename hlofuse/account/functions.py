"""Shares of the user's functions and of a model's layers in what a module launches."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice, pairwise
from typing import Literal, TypeAlias

from hlofuse.analysis.kernels import name_bearers
from hlofuse.format.paths import Direction, scopes_of
from hlofuse.ir import Instruction, Module, Record, grouped
from hlofuse.ir.attributes.metadata import SourceLocation
from .account import Account, Launched, totals_of

_SPLIT_FROM = 1 / 3  # a larger part of the whole is split into what it calls
_OWN = 0.9  # a function is no helper of others where one caller has this part of it
_SCOPE = 5  # a tenth in scopes within splits as half in functions does
_LIBRARY = re.compile(r".*[/\\](?:site|dist)-packages[/\\]([^/\\.]+)")
_NOT_THE_USERS = re.compile(r"<(?!ipython|stdin|string).*>|.*[/\\]python3\.\d+[/\\].*")
_NUMBER = re.compile(r"(?:(?<=[_.])|^)\d+$")
Unit: TypeAlias = Literal["measured", "estimated", "bytes"]
Node: TypeAlias = tuple[str, str]
"""A file and a function; without a file a package, or a scope within those around it that begins with `/`."""


class FunctionShare(Record):
    """What one function launches, those that it calls included unless they have a share of their own."""

    file: str  # The file of a function; empty for a scope and for a package
    name: str  # `attention`, `layer_*/attn`, `block itself` beside what it calls; empty without a name
    kernels: int
    launches: int
    us: float | None
    measured_us: float | None
    bytes_accessed: int
    is_floor: bool  # `us` holds lower bounds
    directions: Mapping[Direction, float]
    """Parts of the account's time, measured or else estimated; of its bytes where no time is known."""

    @property
    def part(self) -> float:
        """All of `directions`."""
        return sum(self.directions.values())

    def amount(self, unit: Unit) -> float:
        """Microseconds, or bytes."""
        if unit == "bytes":
            return self.bytes_accessed
        return (self.measured_us if unit == "measured" else self.us) or 0.0


class Functions(Record):
    """Shares of an account, of the time of a whole run where it is known."""

    unit: Unit = "bytes"
    rows: tuple[FunctionShare, ...] = ()
    """Largest first, launches without a name last; empty where the module names fewer than two functions."""
    directions: Mapping[Direction, float] = {}  # Parts of the whole; empty where nothing is differentiated
    is_partial: bool = False  # The parts are of the known time: a kernel may take any time


_UNNAMED: Node = ("", "")


def functions_of(account: Account, least: int = 2) -> Functions:
    """The launches of an account by function: each counts once, for the function of its own operation. A
    function that takes more than a third is split into those that it calls, unless most of that is in helpers
    which others call as well. There are no rows for fewer functions than `least`."""
    return functions_of_each(account, least=least)[0]


def functions_of_each(*accounts: Account, least: int = 2) -> list[Functions]:
    """The functions of several modules, of one unit and split alike; by names alone if their files differ."""
    unit: Unit = "bytes" if any(a.sums.us is None for a in accounts) else "estimated"
    unit = "measured" if all(a.sums.measured_us for a in accounts) else unit
    launches, paths, sizes = [], [], []
    for account in accounts:
        rows = [row for row in account.rows if row.runs or row.measured_us]
        totals = {"measured": account.sums.measured_us, "estimated": account.sums.us}
        whole = max(sum(_weight(row, unit) for row in rows), totals.get(unit) or 0.0)
        named = [_named_operation(row.instruction, account.module) for row in rows]
        for row, (op_name, _) in zip(rows, named, strict=True):
            launches.append((row, scopes_of(op_name)[1], _weight(row, unit) / whole if whole else 0.0))
        paths.append(_aligned([path for _, path in named]))
        sizes.append(len(rows))
    files = {frozenset(file for path in own for file, _ in path) for own in paths}
    if len(files) > 1:
        paths = [[tuple(("." if f else "", name) for f, name in path) for path in own] for own in paths]
    places = _places([*chain(*paths)], [part for *_, part in launches])
    found = zip(places, launches, strict=True)
    return [_functions(unit, [*islice(found, size)], least) for size in sizes]


_Launch: TypeAlias = tuple[Launched, Direction, float]


def _functions(unit: Unit, launches: Sequence[tuple[Node, _Launch]], least: int) -> Functions:
    groups = grouped(launches)
    if not any(part for _, (*_, part) in launches) or len({*groups} - {_UNNAMED}) < least:
        return Functions(unit)
    found = [_share(*place, own) for place, own in groups.items()]
    found.sort(key=lambda f: (not f.name, -f.part, f.name))
    directions = _share(*_UNNAMED, [launch for _, launch in launches]).directions
    is_partial = unit == "estimated" and any(row.is_open for _, (row, *_) in launches)
    return Functions(unit, tuple(found), directions if {*directions} != {"other"} else {}, is_partial)


def _weight(row: Launched, unit: Unit) -> float:
    if unit == "measured":
        return row.measured_us or 0.0
    return (row.total_us or 0.0) if unit == "estimated" else row.cost.bytes_accessed * row.runs


def _named_operation(launched: Instruction, module: Module) -> tuple[str | None, tuple[Node, ...]]:
    """The `op_name` and the path of a launch, or of the first operation that has one in its place."""
    found = ((x.op_name, tuple(path_of(x, module))) for x in name_bearers(launched))
    return next(((op_name, path) for op_name, path in found if path), (launched.op_name, ()))


def path_of(x: Instruction, module: Module) -> Iterator[Node]:
    """The functions that lead to an operation, outermost first, then the scopes around it."""
    metadata = x.attributes.get("metadata")
    if metadata is None:
        return
    package = ""
    functions = list[Node]()
    for place in module.stack_frames.trace(metadata.stack_frame_id):
        if (library := _LIBRARY.match(place.file)) is not None:
            package = package if functions else library[1]
        elif name := _function_name(place):
            functions.append((place.file, name))
    found = list[Node]()
    for node in reversed(functions):
        # XLA joins the frames of calls that it inlines: what leads back to a function is left out.
        del found[found.index(node) if node in found else len(found) :]
        found.append(node)
    yield from found
    scopes = [f"/{_NUMBER.sub('*', scope)}" for scope in scopes_of(metadata.op_name)[0]]
    if package and functions and not scopes:
        yield "", package
    yield from (("", around) for around in accumulate(scopes))


def _function_name(place: SourceLocation) -> str:
    """`attention` also for a lambda or a generator in it, `Net` for its `__call__`; empty for a module."""
    if _NOT_THE_USERS.match(place.file):
        return ""
    parts = [p for p in place.function.split(".") if p != "__call__" and not p.startswith("<")]
    return parts[-1] if parts else ""


def _aligned(paths: Sequence[tuple[Node, ...]]) -> list[tuple[Node, ...]]:
    """The paths with their first function's callers: JAX keeps some ten frames and leaves out the rest."""
    callers = dict[Node, tuple[Node, ...]]()
    for path in paths:
        for n, node in enumerate(path):
            if n > len(callers.get(node, ())):
                callers[node] = path[:n]
    before = [callers.get(path[0], ()) if path else () for path in paths]
    pairs = zip(before, paths, strict=True)
    return [path if {*b} & {*path} else (*b, *path) for b, path in pairs]


def _places(paths: Sequence[tuple[Node, ...]], weights: Sequence[float]) -> list[Node]:
    calls: dict[Node, dict[Node, float]] = defaultdict(lambda: defaultdict(float))
    for path, weight in zip(paths, weights, strict=True):
        for caller, called in pairwise(path):
            calls[called][caller] += weight
    split = set[Node]()
    while True:
        sums: dict[Node, float] = defaultdict(float)
        in_parts: dict[Node, float] = defaultdict(float)
        for path, weight in zip(paths, weights, strict=True):
            first = next((n for n, node in enumerate(path) if node not in split), len(path))
            for node, called in pairwise((*path[first : first + 2], _UNNAMED)):
                sums[node] += weight
                callers = calls.get(called, {})
                own = callers.get(node, 0.0) > _OWN * sum(callers.values())
                in_parts[node] += weight * (_SCOPE if called[1].startswith("/") else own)
                break
        large = {n for n, own in sums.items() if own > _SPLIT_FROM * sum(weights) and in_parts[n] > own / 2}
        if not large:
            return [_place(path, split) for path in paths]
        split |= large


def _place(path: tuple[Node, ...], split: set[Node]) -> Node:
    for node in path:
        if node not in split:
            return node
    return (path[-1][0], f"{path[-1][1]} itself") if path else _UNNAMED


def _share(file: str, name: str, own: Sequence[_Launch]) -> FunctionShare:
    rows = []
    directions: dict[Direction, float] = defaultdict(float)
    for row, direction, part in own:
        rows.append(row)
        directions[direction] += part
    totals = totals_of(rows, timed=any(row.us is not None for row in rows))
    measured = [row.measured_us for row in rows if row.measured_us is not None]
    return FunctionShare(
        file,
        name.removeprefix("/"),
        totals.kernels,
        totals.launches,
        totals.us,
        sum(measured) if measured else None,
        totals.cost.bytes_accessed,
        totals.is_floor,
        directions,
    )
