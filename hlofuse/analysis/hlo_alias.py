"""Values that have to lie in one buffer (`xla/hlo/analysis/hlo_alias_analysis.cc`)."""

import re
from dataclasses import dataclass, field

from msgspec import Struct

from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.graph import Instruction, Module
from .alias_info import AliasInfo
from .call_sites import CallSites
from .hlo_dataflow import HloDataflow
from .hlo_value import HloValue, Index

Argument = tuple[int, Index]  # A parameter of the entry computation, or an element of it

# What a module says of its arguments' memory (`xla/hlo/ir/hlo_input_output_alias_config.h`): which results
# lie there, and which arguments are given up, as the first line of its text holds it.


_ALIAS = re.compile(r"\{([\d,\s]*)\}:\s*\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}\s*(?:,\s*([\w-]+)\s*)?\)")
_DONOR = re.compile(r"\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}\s*\)")


@dataclass
class InputOutputAlias:
    """Results that lie in the memory of an argument, and further arguments that may be overwritten."""

    aliases: dict[Index, Argument] = field(default_factory=dict)
    kinds: dict[Index, str] = field(default_factory=dict)
    donors: dict[Argument, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._aliased = set(self.aliases.values())

    def is_aliased(self, argument: Argument) -> bool:
        """True if a result lies there (`ParameterHasAlias`)."""
        return argument in self._aliased

    def set_up(self, output: Index, argument: Argument) -> None:
        """The result at `output` shall lie there; the argument is no longer a donor (`SetUpAlias`)."""
        self.aliases[output], self.kinds[output] = argument, "may-alias"
        self._aliased.add(argument)
        self.donors.pop(argument, None)


def alias_config(module: Module) -> InputOutputAlias:
    aliases = {}
    kinds = {}
    for output, number, index, kind in _ALIAS.findall(module.attributes.raw("input_output_alias") or ""):
        aliases[_index(output)] = (int(number), _index(index))
        kinds[_index(output)] = kind or "may-alias"
    donors = _DONOR.findall(module.attributes.raw("buffer_donor") or "")
    return InputOutputAlias(aliases, kinds, dict.fromkeys((int(n), _index(index)) for n, index in donors))


def write_alias_config(module: Module, config: InputOutputAlias) -> None:
    raw = {
        name: value
        for name, value in module.attributes.raw_items.items()
        if name not in ("input_output_alias", "buffer_donor")
    }
    written = {}
    if config.aliases:
        parts = [
            f"{_text(output)}: ({number}, {_text(index)}, {config.kinds[output]})"
            for output, (number, index) in sorted(config.aliases.items())
        ]
        written["input_output_alias"] = f"{{ {', '.join(parts)} }}"
    if config.donors:
        parts = [f"({number}, {_text(index)})" for number, index in sorted(config.donors)]
        written["buffer_donor"] = f"{{ {', '.join(parts)} }}"
    first = {"is_scheduled": raw.pop("is_scheduled")} if "is_scheduled" in raw else {}
    module.attributes = Attributes(raw={**first, **written, **raw})


def _index(text: str) -> Index:
    return tuple(int(x) for x in re.findall(r"\d+", text))


def _text(index: Index) -> str:
    return "{" + ", ".join(map(str, index)) + "}"


class HloBuffer(Struct, eq=False):
    """Memory that holds some values, one after the other."""

    values: list[HloValue]  # In order of their ids


class HloAlias:
    """Values and their buffers, a snapshot."""

    def __init__(self, module: Module, alias_info: AliasInfo) -> None:
        self.calls = CallSites(module)
        self.config: InputOutputAlias = alias_config(module)
        self._info = alias_info
        in_place = [x for c in module.computations for x in c if alias_info.may_be_in_place(x)]
        bodies = {c for x in in_place if (c := x.computation) is not None and c.fusion is not None}
        self.dataflow = HloDataflow(module, self.calls, bodies)
        self._parent = dict[HloValue, HloValue]()
        root, parameters = module.entry.root, module.entry.parameters
        for output, (number, index) in self.config.aliases.items():
            if number < len(parameters):
                self._join(_at(self.dataflow, root, output), _at(self.dataflow, parameters[number], index))
        for computation in module.computations:
            for x in computation:
                if x.is_while and self.dataflow.covers(x):
                    self._join_while(x)
                elif x.opcode == "conditional" and self.dataflow.covers(x):
                    for branch in x.called_computations:
                        self._join_all(branch.root, x)
        for x in in_place:
            self._join_in_place(x)
        self._buffers = dict[HloValue, HloBuffer]()
        shared = dict[HloValue, HloBuffer]()
        for value in self.dataflow.values:
            if value in self._parent:
                first = self._root_of(value)
                buffer = shared.get(first)
                if buffer is None:
                    buffer = shared[first] = HloBuffer([])
                buffer.values.append(value)
                self._buffers[value] = buffer
        self.shared_buffers = list(shared.values())

    def sizes(self) -> dict[HloBuffer, int]:
        """The bytes of the largest value of each buffer, in the order of the values."""
        buffers = dict.fromkeys(map(self.buffer_of, self.dataflow.values))
        return {b: max(v.bytes for v in b.values) for b in buffers}

    def buffer_of(self, value: HloValue) -> HloBuffer:
        """`GetBufferContainingValue`."""
        buffer = self._buffers.get(value)
        if buffer is None:
            buffer = self._buffers[value] = HloBuffer([value])
        return buffer

    def _join_while(self, loop: Instruction) -> None:
        self._join_all(loop.operand, loop)
        for name, part in loop.called:
            parameter = part.parameter
            for own, value in zip(
                self.dataflow.values_of(parameter), self.dataflow.values_of(loop), strict=False
            ):
                if own is not None and own.instruction is parameter:
                    self._join(own, value)
            if name == "body":
                self._join_all(part.root, loop)

    def _join_all(self, a: Instruction, b: Instruction) -> None:
        for v, w in zip(self.dataflow.values_of(a), self.dataflow.values_of(b), strict=False):
            self._join(v, w)

    def _join_in_place(self, x: Instruction) -> None:
        if not self.dataflow.covers(x):
            return
        for pair in self._info.in_place_pairs(x):
            if pair.operand_number < x.operand_count:
                operand = x.operands[pair.operand_number]
                self._join(
                    _at(self.dataflow, x, pair.output_index), _at(self.dataflow, operand, pair.operand_index)
                )

    def _join(self, a: HloValue | None, b: HloValue | None) -> None:
        if a is None or b is None or a is b:
            return
        a, b = self._root_of(a), self._root_of(b)
        self._parent[a] = self._parent[b] = min(a, b, key=lambda v: v.id)

    def _root_of(self, value: HloValue) -> HloValue:
        parent = self._parent
        while (above := parent.get(value, value)) is not value:
            parent[value] = parent[above]
            value = above
        return value


def _at(dataflow: HloDataflow, x: Instruction, index: Index) -> HloValue | None:
    """The value there; None where the shape has no such element."""
    return dataflow.value_at(x, index) if dataflow.covers(x) and dataflow.has(x, index) else None
