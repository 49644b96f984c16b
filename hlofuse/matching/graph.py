"""A module as a graph of values, with fusion seen through.

Fusing moves an instruction into another computation, renames it, makes its operands parameters and may copy
it into several fusions; it computes the same. So fusions are opened here: their parameters stand for the
operands, their roots for the results, and instructions that compute the same value from the same values are
*one* value with several instances. Two modules that differ only in fusion have the same graph."""

from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from hlofuse.ir import Computation, Dims, HlofuseError, Instruction, Module, Record, callees, reach
from .key import Keys, Strictness, payload

# Two of these with the same operands are still two.
_SIDE_EFFECTS = frozenset(
    (
        "all-gather-start all-reduce-start async-done async-start async-update collective-permute-start"
        " copy-start domain infeed outfeed recv recv-done rng rng-get-and-update-state send send-done"
    ).split()
)


def must_run_once(instruction: Instruction) -> bool:
    """True where computing a value once or twice is not the same."""
    if instruction.opcode == "custom-call":
        return instruction.raw("custom_call_has_side_effect") == "true"
    return instruction.opcode in _SIDE_EFFECTS


class Occurrence(Record):
    """An instruction that computes a value, and the outermost fusion it is in, if any."""

    instruction: Instruction
    fusion: Instruction | None = None

    @property
    def kernel(self) -> Instruction:
        return self.fusion or self.instruction


class Matched(Record):
    """The same value on both sides. More places than one: it is computed more than once."""

    before: tuple[Occurrence, ...]
    after: tuple[Occurrence, ...]


# A fusion nested deeper, or one that would blow the graph up, is left closed.
_MAX_DEPTH = 50
_MAX_GROWTH = 20


class Value(Struct, eq=False):
    index: int
    region: "Region"
    opcode: str
    instruction: Instruction  # The instance that represents all
    operands: Dims
    exact: int  # Number of all that is written about it, called computations included
    kind: int  # Number of opcode and attributes, annotations left out
    number: int  # Number of the value and all below it: equal numbers are equal subgraphs
    users: list[tuple[int, int]] = []  # Each user, and the operand number there
    instances: list[Occurrence] = []


class Region(Struct, eq=False):
    """A computation that is not a fusion's body: the entry, a loop's body, a reducer."""

    computation: Computation
    indices: list[int] = []  # Its values, operands before users
    root: int = -1
    number: int = -1  # Equal numbers: they compute the same
    parameters: list[int] = []
    assigned: dict[tuple[int, int], int] = {}
    """Its values by their numbers, and by a count for what must run once each time."""


class Group(Struct, eq=False):
    fusion: Instruction
    members: dict[int, list[Instruction]] = {}  # Value to its instances here
    outputs: Dims = ()


class _Tuple(Struct):
    elements: "list[int | _Tuple]"
    instruction: Instruction
    fusion: Instruction | None
    height: int
    index: int = -1


_Result = int | _Tuple


class Graph:
    """All values of a module, operands before their users."""

    def __init__(self, module: Module, keys: Keys) -> None:
        self.module = module
        self.keys = keys
        self.values = list[Value]()
        self.regions = dict[Computation, Region]()
        self.groups = dict[Instruction, Group]()
        self._opened = 0
        self._budget = _MAX_GROWTH * module.instruction_count + 1000
        order = module.computation_post_order()
        reachable = set(reach([module.entry], callees))
        self.unreachable = len(order) - len(reachable)
        """Computations without a caller; they are not part of the program and are not compared."""
        order = self.reachable = [c for c in order if c in reachable]
        closed = _left_closed(order)
        for computation in order:
            if computation.fusion is None or computation in closed:
                self._add_region(computation)

    @property
    def entry(self) -> Region:
        return self.regions[self.module.entry]

    @cached_property
    def numbers(self) -> dict[Instruction, int]:
        """The value that each instruction computes. A fusion computes none itself."""
        return {o.instruction: v.index for v in self.values for o in v.instances}

    def _add_region(self, computation: Computation) -> None:
        region = self.regions[computation] = Region(computation)
        results = self._traverse(computation, region, {}, None, 0)
        root = self._whole(results[computation.root], region)
        region.root = root
        values = self.values
        for index in region.indices:
            for position, operand in enumerate(values[index].operands):
                values[operand].users.append((index, position))
        loose = sorted(values[i].number for i in region.indices if not values[i].users and i != root)
        region.number = self.keys.number(
            ("region", values[root].number, tuple(loose), len(computation.parameters))
        )

    def _traverse(
        self,
        computation: Computation,
        region: Region,
        arguments: dict[int, _Result],
        fusion: Instruction | None,
        depth: int,
    ) -> dict[Instruction, _Result]:
        results = {}
        self._opened += len(computation)
        for i in computation.post_order():
            opcode = i.opcode
            if opcode == "parameter" and depth:
                argument = arguments.get(i.parameter_number)
                if argument is None:
                    name = fusion.name if fusion else computation.name
                    raise HlofuseError(
                        f"{name} has no operand for parameter {i.payload} of {computation.name}"
                    )
                results[i] = argument
            elif opcode == "get-tuple-element" and isinstance(results[i.operand], _Tuple):
                elements = results[i.operand].elements  # type: ignore[union-attr]
                if i.tuple_index >= len(elements):
                    raise HlofuseError(f"{i.name} takes element {i.tuple_index} of {len(elements)}")
                results[i] = elements[i.tuple_index]
            elif opcode == "fusion" and i.called and depth < _MAX_DEPTH and self._opened < self._budget:
                outer = fusion or i
                if fusion is None:
                    self.groups[i] = Group(i)
                operands = dict(enumerate(results[o] for o in i.operands))
                inside = self._traverse(i.fused_computation, region, operands, outer, depth + 1)
                result = results[i] = inside[i.fused_root]
                if fusion is None:
                    self.groups[i].outputs = tuple(self._leaves(result))
            elif opcode == "tuple":
                results[i] = self._tuple([results[o] for o in i.operands], i, region, fusion)
            else:
                values = tuple(self._whole(results[o], region) for o in i.operands)
                results[i] = self._value(i, values, region, fusion)
        return results

    def _tuple(
        self, elements: list[_Result], i: Instruction, region: Region, fusion: Instruction | None
    ) -> _Tuple:
        height = 1 + max((e.height for e in elements if isinstance(e, _Tuple)), default=0)
        if height > _MAX_DEPTH:
            elements = [self._whole(e, region) for e in elements]
            height = 1
        return _Tuple(elements, i, fusion, height)

    def _leaves(self, result: _Result) -> list[int]:
        if isinstance(result, int):
            return [result]
        return [leaf for element in result.elements for leaf in self._leaves(element)]

    def _whole(self, result: _Result, region: Region) -> int:
        if isinstance(result, int):
            return result
        if result.index < 0:
            operands = tuple(self._whole(e, region) for e in result.elements)
            result.index = self._value(result.instruction, operands, region, result.fusion)
        return result.index

    def _value(self, i: Instruction, operands: Dims, region: Region, fusion: Instruction | None) -> int:
        values, keys, assigned = self.values, self.keys, region.assigned
        for _, callee in i.called:
            if callee not in self.regions:  # a fusion too large to be opened
                self._add_region(callee)
        callees = tuple([self.regions[c].number for _, c in i.called]) if i.called else ()
        written = keys.attributes_number(i.attributes, Strictness.WRITTEN)
        text = payload(i) if i.payload is not None else None
        exact = keys.number((i.opcode, written, text, callees, keys.shape(i.shape)))
        number = keys.number((exact, *[values[o].number for o in operands]))
        key = (number, 0)
        if must_run_once(i):
            while key in assigned and all(x.instruction is not i for x in values[assigned[key]].instances):
                key = (number, key[1] + 1)
        index = assigned.get(key)
        if index is None:
            index = assigned[key] = len(values)
            kind = keys.number((i.opcode, keys.attributes_number(i.attributes, Strictness.OPERATION)))
            value = Value(index, region, i.opcode, i, operands, exact, kind, number)
            values.append(value)
            region.indices.append(index)
            if i.is_parameter:
                region.parameters.append(index)
        value = values[index]
        if fusion is None:
            value.instances.append(Occurrence(i, None))
            if value.instances[0].fusion is not None:
                value.instruction = i  # the name a reader sees first is the one outside fusions
                value.instances.insert(0, value.instances.pop())
        else:
            members = self.groups[fusion].members.setdefault(index, [])
            if i not in members:
                members.append(i)
                value.instances.append(Occurrence(i, fusion))
        return index


def _left_closed(order: list[Computation]) -> set[Computation]:
    """Bodies of fusions nested too deep to be opened; they are compared as computations."""

    def inside(place: tuple[Computation, int]) -> Iterator[tuple[Computation, int]]:
        computation, depth = place
        for i in computation:
            for _, callee in i.called if i.is_fusion else ():
                yield callee, (depth + 1) % (_MAX_DEPTH + 1)  # one that is left closed begins again

    places = reach([(c, 0) for c in order if c.fusion is None], inside)
    return {c for c, depth in places if not depth and c.fusion is not None}
