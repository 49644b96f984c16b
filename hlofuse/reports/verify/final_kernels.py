"""What two final modules launch: the names of kernels, the kernels themselves, and the copies.

Tile sizes, algorithms and the memory that libraries work in do not count, nor does the order in which kernels
run: on a device the autotuner measures for the former, and the scheduler chooses the latter.
"""

import time
from collections import Counter
from collections.abc import Hashable

from hlofuse.analysis.launches import Launch, launches
from hlofuse.analysis.structural_key import StructuralKeys
from hlofuse.inputs.stage import doubt
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.grouping import unmatched
from hlofuse.ir.opcodes import CALLED_COMPUTATION_ATTRIBUTES
from hlofuse.ir.shape import Shape
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.pipelines import TARGETS
from hlofuse.replay import ReplayConfig, ReplayInput, replay
from hlofuse.reports.verify.model import FinalVerdict, FirstDifference, KernelSide, Verdict, side_of


def verify_final(
    before: Module,
    final: Module,
    *,
    name: str | None = None,
    config: ReplayConfig,
    ids: UniqueIds | None = None,
) -> Verdict:
    """Replay `before` up to what is launched and compare with `final`, XLA's module after all passes."""
    start = time.perf_counter()
    target = config.target
    actual = replay(ReplayInput(before, ids), config)
    end = actual.final
    seconds = time.perf_counter() - start
    found = compare_final(end.module, final, TARGETS[target].backend)
    difference = None
    if found.only_xla or found.only_actual:
        first = (*found.only_actual, None)[0], (*found.only_xla, None)[0]
        difference = FirstDifference(None, *first)
    notes = [doubt(before, "BEFORE", target)] if not found.agrees else []
    if not found.agrees and end.not_repeated:
        notes.append(f"Not replayed: {', '.join(end.not_repeated)}.")
    if not found.agrees and not final.is_scheduled:
        notes.append("AFTER is not the module after all optimizations.")
    return Verdict(
        name or before.name,
        found.agrees,
        found.agrees,
        (),
        found.named,
        found.kernels,
        found.kernels,
        difference,
        None,
        seconds,
        note=" ".join(filter(None, notes)) or None,
        order=actual.order_source,
        final=found,
    )


_IGNORED = frozenset(
    {
        *CALLED_COMPUTATION_ATTRIBUTES,
        "backend_config",
        "control-predecessors",
        "frontend_attributes",
        "metadata",
        "origin",
        "sharding",
    }
)


def compare_final(actual: Module, xla: Module, backend: str) -> FinalVerdict:
    """Compare what the replayed final module launches with what XLA's does."""
    own, expected = launches(actual, backend), launches(xla, backend)
    own_names, expected_names = _names(own), _names(expected)
    keys = _KernelKeys()
    own_keyed, expected_keyed = keys.of(own), keys.of(expected)
    own_copies, expected_copies = _copies(own), _copies(expected)
    return FinalVerdict(
        named=sum((own_names & expected_names).values()),
        kernels=sum(expected_names.values()),
        same_names=own_names == expected_names,
        same_kernels=_counted(own_keyed) == _counted(expected_keyed),
        same_copies=_counted(own_copies) == _counted(expected_copies),
        copies=len(expected_copies),
        copies_actual=len(own_copies),
        only_xla=_lacking(expected_keyed, own_keyed) + _lacking(expected_copies, own_copies),
        only_actual=_lacking(own_keyed, expected_keyed) + _lacking(own_copies, expected_copies),
        renamed=tuple(sorted((expected_names - own_names).elements())),
    )


_Launches = list[tuple[Instruction, Launch]]
_Keyed = list[tuple[Hashable, Instruction, Launch]]


def _names(found: _Launches) -> Counter[str]:
    return Counter(i.name for i, launch in found if launch.kind != "copy")


def _copies(found: _Launches) -> _Keyed:
    return [(i.shape.key, i, launch) for i, launch in found if launch.kind == "copy"]


def _counted(keyed: _Keyed) -> Counter[Hashable]:
    return Counter(key for key, _, _ in keyed)


def _lacking(keyed: _Keyed, other: _Keyed) -> tuple[KernelSide, ...]:
    """What the other side does not have."""
    return tuple(map(side_of, unmatched(((key, i) for key, i, _ in keyed), _counted(other))))


class _KernelKeys:
    """Equal keys for kernels that do the same, whatever they read and are called."""

    def __init__(self) -> None:
        self._called = StructuralKeys()
        self._numbers: dict[Hashable, int] = {}

    def of(self, found: _Launches) -> _Keyed:
        return [((launch.kind, self._kernel(i)), i, launch) for i, launch in found if launch.kind != "copy"]

    def _kernel(self, kernel: Instruction) -> Hashable:
        operands = tuple(o.shape.key for o in kernel.operands)
        if kernel.opcode != "fusion":
            return (self._operation(kernel), operands)
        return (self._operation(kernel), len(operands), self._body(kernel))

    def _body(self, fusion: Instruction) -> int:
        """Parameters count in the order in which operations read them: their numbers play no part."""
        values: dict[Instruction, int] = {}
        parameters = 0
        for i in fusion.fused_computation.post_order():
            if i.opcode == "parameter":
                key: Hashable = ("parameter", parameters, i.shape.key)
                parameters += 1
            elif i.opcode == "fusion":
                key = (self._kernel(i), tuple(values[o] for o in i.operands))
            else:
                payload = i.literal.canonical_text if i.opcode == "constant" else None
                key = (self._operation(i), payload, tuple(values[o] for o in i.operands))
            values[i] = self._numbers.setdefault(key, len(self._numbers))
        return values[fusion.fused_root]

    def _operation(self, i: Instruction) -> Hashable:
        raw = i.attributes.raw_items
        attributes = tuple(sorted((k, "".join(v.split())) for k, v in raw.items() if k not in _IGNORED))
        called: tuple[int, ...] = ()
        if i.opcode != "fusion":
            called = tuple(self._called.of_computation(c) for _, c in i.called)
        return (i.opcode, _results(i).key, attributes, called)


def _results(i: Instruction) -> Shape:
    """The shape, without the bytes that a library call works in."""
    shape = i.shape
    if i.opcode != "custom-call" or not shape.is_tuple or len(shape.tuple_shapes) < 2:
        return shape
    last = shape.tuple_shapes[-1]
    is_scratch = last.element_type in ("s8", "u8") and last.rank == 1
    return Shape.tuple_of(shape.tuple_shapes[:-1]) if is_scratch else shape
