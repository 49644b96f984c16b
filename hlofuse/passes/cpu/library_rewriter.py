"""Fusions that YNNPACK computes (`xla/backends/cpu/transforms/library_rewriter.cc`)."""

from collections import deque
from dataclasses import dataclass

from hlofuse.ir.fusing import append_producer, clone_of, computation_of, create_fusion
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.merging import merge_fusion
from hlofuse.ir.removing import set_attribute
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.rewriting import substituted
from hlofuse.passes.cpu.ynn_support import is_preferred, is_supported
from hlofuse.rules.rewrites import LIBRARY
from hlofuse.trace import Recorder

_CONFIG = '{"outer_dimension_partitions":[],"fusion_config":{"kind":"__ynn_fusion"}}'
_MOST_INSTRUCTIONS = 100
# Fusions start at these; those of dots and convolutions do not grow.
STARTS = frozenset({"dot", "convolution", "reduce", "reduce-window"})
_ALONE = frozenset({"dot", "convolution"})


@dataclass(frozen=True)
class LibraryRewriter(Pass):
    """`dot-library-rewriter`; `starts` are the operations whose kind of fusion is on, by default all."""

    name = "dot-library-rewriter"
    starts: frozenset[str] = STARTS

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            if not any(opcode_is_function(caller, computation) for caller in computation.callers):
                changed |= _Growing(recorder).run(computation, self.starts)
        return changed


def opcode_is_function(caller: Instruction, computation: Computation) -> bool:
    """True if a reduction, a map or a similar operation applies the computation to elements."""
    return caller.opcode != "call" and any(n == "to_apply" and c is computation for n, c in caller.called)


class _Growing:
    """The fusions of one computation."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._fused: set[Instruction] = set()

    def run(self, computation: Computation, starts: frozenset[str]) -> bool:
        starters = [i for i in reversed(computation.post_order()) if i.opcode in starts]
        for start in starters:
            if start in self._fused or not is_supported(start) or not is_preferred(start):
                continue
            self._fused.add(start)
            fusion = create_fusion(start, "kCustom", "ynn_")
            set_attribute(fusion, "backend_config", _CONFIG)
            substituted(start, fusion)
            _widen(fusion.fused_root, start)
            self._recorder.created_instructions(start.name, [fusion], rule=LIBRARY.code, reason=LIBRARY.title)
            grown = start.opcode not in _ALONE
            while grown:
                fusion, grown = self._fuse_neighbours(fusion)
        return bool(self._fused)

    def _fuse_neighbours(self, fusion: Instruction) -> tuple[Instruction, bool]:
        """The fusion, which may have become part of another one, and whether it grew."""
        frontier: deque[tuple[Instruction, str]] = deque()
        visited = {fusion}
        self._look_around(fusion, fusion, "both", frontier, visited)
        changed = False
        while frontier and len(fusion.fused_computation) < _MOST_INSTRUCTIONS:
            instruction, direction = frontier.popleft()
            if (
                instruction.fusion_kind == "kCustom"
                and instruction.attributes.raw("backend_config") == _CONFIG
                and len(fusion.fused_computation) + len(instruction.fused_computation) <= _MOST_INSTRUCTIONS
            ):
                fusion = _merge(fusion, instruction, direction)
                changed = True
                continue
            if not is_supported(instruction):
                continue
            self._fused.add(instruction)
            self._look_around(fusion, instruction, direction, frontier, visited)
            if direction == "up":
                new = append_producer(fusion, instruction)
                if not instruction.users:
                    computation_of(instruction).remove_instruction(instruction)
            else:
                new = _append_consumer(fusion, instruction)
            _widen(new, instruction)
            changed = True
        return fusion, changed

    def _look_around(
        self,
        fusion: Instruction,
        instruction: Instruction,
        direction: str,
        frontier: deque[tuple[Instruction, str]],
        visited: set[Instruction],
    ) -> None:
        """Add what could be fused next (`AddFusionCandidates`)."""
        if direction in ("up", "both"):
            for operand in instruction.operands:
                if operand in self._fused or operand in visited:
                    continue
                if all(u is fusion or u is instruction or u in self._fused for u in operand.users):
                    frontier.append((operand, "up"))
                    visited.add(operand)
        if len(instruction.users) != 1 or direction == "up":
            return
        (user,) = instruction.users
        if user not in self._fused and user not in visited:
            frontier.append((user, "down"))
            visited.add(user)


def _merge(fusion: Instruction, other: Instruction, direction: str) -> Instruction:
    consumer, producer = (fusion, other) if direction == "up" else (other, fusion)
    merge_fusion(consumer, producer)
    computation_of(producer).remove_instruction(producer)
    return consumer


def _append_consumer(fusion: Instruction, consumer: Instruction) -> Instruction:
    """`consumer` becomes the fusion's root (`FuseConsumerInstruction`)."""
    body = fusion.fused_computation
    operands = []
    for operand in consumer.operands:
        if operand is fusion:
            operands.append(body.root)
            continue
        if operand not in fusion.operands:
            number = len(fusion.operands)
            parameter = Instruction(f"param_{number}", operand.shape, "parameter", payload=str(number))
            body.add_instruction(parameter)
            fusion.append_operand(operand)
        operands.append(body.parameters[fusion.operands.index(operand)])
    body.root = body.add_instruction(clone_of(consumer, operands))
    fusion.shape = body.root.shape
    substituted(consumer, fusion)
    return body.root


def _widen(inner: Instruction, original: Instruction) -> None:
    """A dot that the library computes in f32 is converted back (`InsertConvertIfNecessary`)."""
    if original.opcode != "dot" or inner.shape.element_type != "bf16":
        return
    converted = make.add(inner, "convert", inner.shape, [inner])
    inner.replace_all_uses_with(converted)
    inner.shape = inner.shape.with_element_type("f32")
