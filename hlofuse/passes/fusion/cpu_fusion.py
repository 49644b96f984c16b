"""XLA:CPU's instruction fusion (`xla/service/cpu/cpu_instruction_fusion.cc`), and its sibling fusion, off
unless asked for (`xla/service/cpu/cpu_multi_output_fusion.cc`, `xla/service/multi_output_fusion.cc`)."""

import heapq
from typing import ClassVar

from hlofuse.analysis import cpu_predicates
from hlofuse.analysis.call_sites import non_fusion_computations
from hlofuse.analysis.components import Reachability
from hlofuse.analysis.custom_calls import is_embedded
from hlofuse.analysis.in_place import in_place_pairs
from hlofuse.ir import Computation, Instruction, Module, numbered, reach
from hlofuse.ir.fusing import append_producer, merge_fusion_into_multi_output
from hlofuse.passes.base import ReleasePass
from hlofuse.passes.dce import HloDCE
from hlofuse.rules import multi_output_fusion as rules
from hlofuse.rules.cpu_instruction_fusion import RULES, SOFTMAX_SHIFT
from hlofuse.rules.settings import first_verdict, pair_refusal
from hlofuse.rules.verdict import Verdict
from hlofuse.trace import Recorder
from .instruction_fusion import FusionDriver, InstructionFusion


class _Driver(FusionDriver):
    rules = RULES

    def prepare(self) -> None:
        """Find the consumers to leave alone (`ComputeInstructionsToSkip`)."""
        skipped = self.state.skipped
        for computation in self.module.computations:
            for instruction in computation:
                if instruction.fusion_kind == "kCustom":
                    skipped.add(instruction)
                elif instruction.opcode == "custom-call":
                    skipped.update(x for callee in instruction.called_computations[:1] for x in callee)
                elif instruction.called and self._is_emitted_whole(instruction.opcode):
                    skipped.update(x for callee in instruction.called_computations for x in callee)

    def _is_emitted_whole(self, opcode: str) -> bool:
        """True if what such an operation calls is generated as a part of it (`BlockSubcomputationFusion`)."""
        if opcode == "scatter":
            return True
        return self.release.cpu_inlined_computations_stay and opcode not in cpu_predicates.UNSUPPORTED_OPCODES

    def is_expensive(self, instruction: Instruction) -> bool:
        return cpu_predicates.is_expensive_on_cpu(instruction, self.release)

    def choose_kind(self, producer: Instruction, consumer: Instruction) -> str:
        return "kOutput" if cpu_predicates.is_output_fusible(producer, consumer) else "kLoop"

    def holds(self, refusal: Verdict, producer: Instruction, fusion: Instruction) -> bool:
        return refusal.rule.code == "IF004" or (
            refusal.rule.code == "CPU012"  # answers of rules before it may change
            and not producer.is_reduce
            and all(not o.is_dot for o in producer.operands)
            and not in_place_pairs(fusion, self.release)
        )

    def unfusible(self, computation: Computation) -> dict[Instruction, Verdict]:
        found = super().unfusible(computation)
        in_force = self.release.has(SOFTMAX_SHIFT.span, SOFTMAX_SHIFT.code)
        if in_force and self.state.settings.enables(SOFTMAX_SHIFT):
            for instruction in computation.post_order():
                if instruction not in found and cpu_predicates.is_softmax_shift(instruction):
                    found[instruction] = Verdict(SOFTMAX_SHIFT)
        return found

    def fuse_instruction(self, fusion: Instruction, producer: Instruction) -> None:
        if not self.state.may_duplicate:
            super().fuse_instruction(fusion, producer)
            return
        # Producers are never fusions here, so there is one clone to account for.
        self.state.evaluation(fusion).take_in(producer, append_producer(fusion, producer))


class CpuInstructionFusion(InstructionFusion):
    """`fusion` on CPU; `may_duplicate` is off when multi-output fusion follows."""

    driver: ClassVar[type[FusionDriver]] = _Driver


class CpuMultiOutputFusion(ReleasePass):
    """`cpu_multi_output_fusion`, with `xla_cpu_use_multi_output_fusion`: joins readers of one array."""

    name = "cpu_multi_output_fusion"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in non_fusion_computations(module):
            first = computation.first_caller
            if first is not None and first.opcode.startswith("async-"):
                continue
            if self.release.embedded_computations_stay and is_embedded(computation):
                continue
            changed |= not _is_inside_fusion(computation) and _Siblings(self, computation, recorder).run()
        if changed:
            HloDCE(settings=self.settings).run(module, recorder)
        return changed


def _is_inside_fusion(computation: Computation) -> bool:
    """The computation is called, by whatever way, from inside a fusion (`CheckInsideFusion`)."""
    around = reach([computation], lambda c: [x.computation for x in c.callers if x.computation is not None])
    return any(c.fusion is not None for c in around)


class _Siblings:
    """One computation: a work list of pairs by what they share, best first."""

    def __init__(
        self,
        options: CpuMultiOutputFusion,
        computation: Computation,
        recorder: Recorder,
    ) -> None:
        self.settings = options.settings
        self.release = options.release
        self.recorder = recorder
        order = computation.post_order()
        self._order = order
        self._number = numbered(order)
        self._reachability = Reachability(computation)
        self._partners: dict[Instruction, list[tuple[Instruction, int]]] = {x: [] for x in order}
        self._consumed = set[Instruction]()
        self._queue = list[tuple[int, int, Instruction, Instruction]]()
        self._pushed = 0

    def why_illegal(self, fusion: Instruction, other: Instruction) -> Verdict | None:
        """The verdict against fusing the two (`LegalToFuse`)."""
        pair = rules.Siblings(fusion, other, self._reachability, self.release, self.settings)
        return pair_refusal(rules.CPU_LEGAL, pair, self.settings)

    def run(self) -> bool:
        for instruction in self._order:
            if first_verdict(rules.CPU_CANDIDATE, instruction, self.settings) is None:
                self._enter(instruction)
        changed = False
        while self._queue:
            profit, _, fusion, other = heapq.heappop(self._queue)
            if fusion in self._consumed or other in self._consumed:
                continue
            if (refusal := self.why_illegal(fusion, other)) is not None:
                self.recorder.ineligible(other, fusion, refusal)
                continue
            self._join(fusion, other, -profit)
            changed = True
        return changed

    def _enter(self, instruction: Instruction) -> None:
        """Put the pairs of one candidate with the other users of its operands on the work list."""
        block = int(self.settings.value(rules.USERS_CONSIDERED))
        found = dict[Instruction, None]()
        for operand in instruction.operands:
            if not rules.is_profitable_operand(operand):
                continue
            users = operand.users
            start = users.index(instruction) // block * block
            for user in users[start : start + block]:
                if user is instruction or user in found:
                    continue
                refusal = self._why_not_entered(instruction, user)
                if refusal is None:
                    found[user] = None
                else:
                    self.recorder.ineligible(user, instruction, refusal)
        for user in found:
            profit = rules.shared_bytes(instruction, user)
            if profit > 0:
                self._partners[instruction].append((user, profit))
                self._partners[user].append((instruction, profit))
                self._push(instruction, user, profit)
            else:
                self.recorder.ineligible(user, instruction, Verdict(rules.NOTHING_SHARED))

    def _why_not_entered(self, instruction: Instruction, user: Instruction) -> Verdict | None:
        if (no_candidate := first_verdict(rules.CPU_CANDIDATE, user, self.settings)) is not None:
            return no_candidate
        pair = rules.Siblings(instruction, user, self._reachability, self.release, self.settings)
        if (joined := rules.connected(pair)) is not None:
            return joined
        if user.is_fusion and self._number[instruction] < self._number[user]:
            return Verdict(rules.LATER_FUSION)
        return self.why_illegal(instruction, user)

    def _push(self, fusion: Instruction, other: Instruction, profit: int) -> None:
        # Of equal profits the pair pushed last comes first.
        heapq.heappush(self._queue, (-profit, -self._pushed, fusion, other))
        self._pushed += 1

    def _join(self, fusion: Instruction, other: Instruction, profit: int) -> None:
        self._reachability.merge(other, fusion)
        # Candidates the joined kernel may have, with what each shared so far (`GetNewFusibles`).
        connected, consumed = self._reachability.connected, self._consumed
        remaining = [
            (x, p) for x, p in self._partners[fusion] if x not in consumed and not connected(fusion, x)
        ]
        instructions = {x for x, _ in remaining}
        self._partners[fusion] = list(remaining)
        for x, _ in self._partners[other]:
            if x is not fusion and x not in consumed and x not in instructions and not connected(fusion, x):
                remaining.append((x, 0))
        self._partners[other] = []
        partners = remaining
        pair, names = (other, fusion), (other.name, fusion.name)
        joined = self._fuse(fusion, other)
        self._consumed.update({fusion, other} - {joined})
        producer, consumer = (1, 0) if joined is other else (0, 1)
        self.recorder.fuse(
            pair[producer],
            names[consumer],
            joined,
            rule=rules.SAVES_READS,
            kind="sibling",
            created=False,
            figures={"shared_bytes": profit},
        )
        for partner, old in partners:
            new = rules.shared_bytes(partner, joined)
            if new > old:
                self._push(joined, partner, new)
            if old == 0:
                self._partners[joined].append((partner, new))

    def _fuse(self, fusion: Instruction, other: Instruction) -> Instruction:
        """Move one into the other, whichever has several results already taking the other in (`Fuse`)."""
        remaining, going = fusion, other
        if not remaining.is_multi_output_fusion and going.is_multi_output_fusion:
            remaining, going = going, remaining
        if going.is_fusion:
            merge_fusion_into_multi_output(remaining, going)
        else:
            append_producer(remaining, going, add_output=True)
        return remaining
