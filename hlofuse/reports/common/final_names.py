"""XLA's final names: those of `after_optimizations` dumps and of profiles.

`rename_fusions` and the passes that follow rename nearly every kernel that fusion leaves. Where XLA's final
module is at hand, its instructions are matched with the replay's by what they compute; otherwise the passes
after fusion are replayed.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.analysis.kernels import computed_in, kernels
from hlofuse.diff import ModuleDiff, diff
from hlofuse.ir.graph import Instruction, Module
from hlofuse.replay import Replay
from hlofuse.reports.common.model import both_names

NamesSource: TypeAlias = Literal["dump", "replayed"]


@dataclass(frozen=True)
class FinalNames:
    """The names at the end of the compilation, and those at the end of fusion."""

    module: Module
    """The module as it is launched."""
    names_at_fusion: Mapping[str, str] = field(repr=False)
    """Of each final name the name at the end of the fusion passes. Without what later passes added."""
    source: NamesSource
    """`dump`: read from XLA's final module; `replayed`: from the passes after fusion."""

    @cached_property
    def _final(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for final, name in self.names_at_fusion.items():
            if final == name or name not in found:
                found[name] = final
        return found

    def of(self, name: str) -> str:
        """The final name of an instruction of the module after fusion; its own where it has no other."""
        return self._final.get(name, name)

    def knows(self, name: str) -> bool:
        """True if an instruction of the module after fusion has a final name."""
        return name in self._final


def final_names(replay: Replay, final: Module | None = None) -> FinalNames:
    """The final names of what a replay leaves; `final` is XLA's own final module, where that is at hand."""
    if final is None or replay.config.changes:
        replayed = replay.final
        return FinalNames(replayed.module, replayed.names_at_fusion, "replayed")
    return FinalNames(final, matched_names(replay.after, final), "dump")


class LaunchedNames:
    """Both names of what a replay launches."""

    def __init__(self, replay: Replay, names: FinalNames | None = None) -> None:
        """`names` are preferred where they come from XLA's own final module."""
        self._module, self._at_fusion = replay.final.module, replay.final.names_at_fusion
        self._names = names if names is not None and names.source == "dump" else None
        self.source: NamesSource = "dump" if self._names is not None else "replayed"

    def of(self, name: str) -> tuple[str, str]:
        """The name at the end of fusion (its own for what later passes made), and the final name."""
        at_fusion = self._at_fusion.get(name)
        if at_fusion is None:
            return name, name
        if self._names is not None and self._names.knows(at_fusion):
            return at_fusion, self._names.of(at_fusion)
        return at_fusion, name

    def shown(self) -> dict[str, str]:
        """Of each kernel of the final module its final name, then that at the end of fusion."""
        names = [k.name for k in kernels(self._module)]
        return {name: both_names(*reversed(self.of(name))) for name in names}

    def renamed(self) -> dict[str, str]:
        """By their names at the end of fusion the final ones of kernels that have another."""
        both = (self.of(k.name) for k in kernels(self._module))
        return {at_fusion: final for at_fusion, final in both if at_fusion != final}


def matched_names(after: Module, final: Module) -> dict[str, str]:
    """Of the instructions of `final` the names that they have in `after`, matched by what they compute.

    `final` is a later dump of the same program, or the same one with other names.

    Fusions are paired by their results, one with one. What only `final` has is left out, as are fusions whose
    results several fusions compute with none of them left for it.
    """
    found = diff(after, final)
    pairs = _kernel_pairs(found, final)
    _add_equivalents(pairs, after, final)
    _add_views(pairs, final)
    names = {new.name: old.name for new, old in pairs.items()}
    for new, old in pairs.items():
        if new.opcode == "fusion" and new.called and old.called:
            for inner in new.fused_computation:
                place = next((p for p in found.before_of(inner) if p.fusion is old), None)
                if place is not None:
                    names.setdefault(inner.name, place.instruction.name)
    return names


def _kernel_pairs(found: ModuleDiff, final: Module) -> dict[Instruction, Instruction]:
    """Each instruction outside fusions with the one that computes the same results; certain pairs first."""
    choices: list[tuple[Instruction, list[Instruction]]] = []
    for computation in final.computations:
        if computation.fusion is None:
            choices += [(i, candidates) for i in computation if (candidates := _candidates(i, found))]
    pairs: dict[Instruction, Instruction] = {}
    taken: set[Instruction] = set()
    for only_certain in (True, False):
        for new, candidates in choices:
            if new in pairs or (only_certain and len(candidates) > 1):
                continue
            free = [c for c in candidates if c not in taken]
            old = next((c for c in free if c.name == new.name), free[0] if free else None)
            if old is not None:
                pairs[new] = old
                taken.add(old)
    return pairs


def _candidates(new: Instruction, found: ModuleDiff) -> list[Instruction]:
    """What computes all results of `new`, those that compute nothing else first."""
    results = _results(new)
    places = [p for r in results if (p := [o.fusion or o.instruction for o in found.before_of(r)])]
    if not places:
        return []
    common = [i for i in dict.fromkeys(places[0]) if all(i in others for others in places[1:])]
    return sorted(common, key=lambda i: (i.opcode != new.opcode, not _yields(i, results, found)))


def _results(i: Instruction) -> list[Instruction]:
    """What computes its results: the roots of a fusion, without the copies that `copy_fusion` adds."""
    root = i
    while root.opcode == "fusion" and root.called:
        root = root.fused_root
    if root is i:
        return [i]
    roots = list(root.operands) if root.opcode == "tuple" else [root]
    return [r.operands[0] if r.opcode == "copy" and len(roots) > 1 else r for r in roots]


def _yields(old: Instruction, results: Iterable[Instruction], found: ModuleDiff) -> bool:
    """True if the results of `old` are the very results given, and not further uses of them."""
    wanted = {p.instruction for r in results for p in found.before_of(r)}
    return all(r in wanted for r in _results(old))


def _add_equivalents(pairs: dict[Instruction, Instruction], after: Module, final: Module) -> None:
    """Pair what lies in another computation now, such as an async one: equal numbers of one content."""
    taken = set(pairs.values())
    left: dict[Hashable, list[Instruction]] = {}
    for old in kernels(after):
        if old not in taken:
            left.setdefault(_content(old), []).append(old)
    if not left:
        return
    unmatched: dict[Hashable, list[Instruction]] = {}
    for new in kernels(final):
        if new not in pairs:
            unmatched.setdefault(_content(new), []).append(new)
    for content, new_ones in unmatched.items():
        old_ones = left.get(content, [])
        if len(old_ones) == len(new_ones):
            pairs.update(zip(new_ones, old_ones, strict=True))


def _content(kernel: Instruction) -> Hashable:
    inside = computed_in(kernel) if kernel.opcode == "fusion" and kernel.called else (kernel,)
    opcodes = tuple(sorted(i.opcode for i in inside))
    if custom_call_target(kernel).startswith("__cublas$") or "dot" in opcodes:
        # The autotuner puts a library call, with its workspace, in the place of a fused product.
        return next(kernel.shape.leaves())[1].key, kernel.op_name, "dot"
    return kernel.shape.key, kernel.op_name, opcodes


def _add_views(pairs: dict[Instruction, Instruction], final: Module) -> None:
    """Elements of tuples, which `diff` sees through: that of the same number of the same tuple."""
    elements: dict[tuple[Instruction, int], Instruction] = {}
    for old in set(pairs.values()):
        for user in old.users:
            if user.opcode == "get-tuple-element":
                elements.setdefault((old, user.tuple_index), user)
    for computation in final.computations:
        for new in computation:
            if new.opcode == "get-tuple-element" and new not in pairs:
                source = pairs.get(new.operands[0])
                if source is not None and (source, new.tuple_index) in elements:
                    pairs[new] = elements[source, new.tuple_index]
