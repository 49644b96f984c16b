"""Comparison of what two final modules launch: kernels, their names, and copies.

Tile sizes, algorithms and the memory that libraries work in do not count, nor does the order in which kernels
run: on a device the autotuner measures for the former, and the scheduler chooses the latter.
"""

import time
from collections import Counter
from collections.abc import Hashable

from hlofuse.analysis.launches import Launch, launches
from hlofuse.compilation import CompilationInput, ReplayConfig, compile
from hlofuse.inputs.stage import doubt
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.grouping import unmatched
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.matching.kernels import KernelKeys
from hlofuse.matching.key import Strictness
from hlofuse.pipelines import TARGETS
from hlofuse.pipelines.stage import Stage
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
    actual = compile(CompilationInput(before, ids), config)
    end = actual.span(Stage.SCHEDULED)
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


def compare_final(actual: Module, xla: Module, backend: str) -> FinalVerdict:
    """Compare what the replayed final module launches with what XLA's does."""
    own, expected = launches(actual, backend), launches(xla, backend)
    own_names, expected_names = _names(own), _names(expected)
    keys = KernelKeys(Strictness.COMPUTED)
    own_keyed, expected_keyed = _keyed(own, keys), _keyed(expected, keys)
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
_Keyed = list[tuple[Hashable, Instruction]]


def _names(found: _Launches) -> Counter[str]:
    return Counter(i.name for i, launch in found if launch.kind != "copy")


def _keyed(found: _Launches, keys: KernelKeys) -> _Keyed:
    return [((launch.kind, keys.kernel(i)), i) for i, launch in found if launch.kind != "copy"]


def _copies(found: _Launches) -> _Keyed:
    return [(i.shape.key, i) for i, launch in found if launch.kind == "copy"]


def _counted(keyed: _Keyed) -> Counter[Hashable]:
    return Counter(key for key, _ in keyed)


def _lacking(keyed: _Keyed, other: _Keyed) -> tuple[KernelSide, ...]:
    """The kernels of `keyed` that the other side lacks."""
    return tuple(map(side_of, unmatched(keyed, _counted(other))))
