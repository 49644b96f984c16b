"""The fusion driver all targets share (`xla/service/instruction_fusion.cc`)."""

from collections.abc import Callable
from typing import Any, ClassVar

from hlofuse.analysis.call_sites import non_fusion_computations
from hlofuse.analysis.custom_calls import is_embedded
from hlofuse.analysis.elementwise import is_expensive, is_fusible
from hlofuse.ir import Computation, Computations, Instruction, Module
from hlofuse.ir.fusing import append_producer, fuse_in_place_of, merge_fusion
from hlofuse.passes.base import ReleasePass, any_change
from hlofuse.rules.instruction_fusion import (
    CANNOT_BE_DUPLICATED,
    NOTHING_AGAINST,
    OPERAND_NOT_FUSIBLE,
    CandidatePair,
    FusionState,
    expensive_would_be_duplicated,
    may_fuse_into_in_place,
    pass_cannot_duplicate,
    producer_is_root,
)
from hlofuse.rules.settings import first_verdict, in_force
from hlofuse.rules.verdict import Verdict
from hlofuse.trace import Recorder
from .fusion_queue import ReversePostOrderQueue, globally_unfusible

BASE_RULES: tuple[Callable[[CandidatePair], Verdict | None], ...] = (
    producer_is_root,
    expensive_would_be_duplicated,
    pass_cannot_duplicate,
    may_fuse_into_in_place,
)
"""The conditions of `InstructionFusion::ShouldFuse`, in its order."""


class InstructionFusion(ReleasePass, kw_only=True):
    """Fuses producers into consumers, last consumer first; a target sets `driver` and the options."""

    name = "fusion"
    driver: "ClassVar[type[FusionDriver]]"
    may_duplicate: bool = True

    def run(self, module: Module, recorder: Recorder) -> bool:
        return self.driver(self, module, recorder).run()


class FusionDriver:
    """One run of the pass: walks, asks, applies, records. Targets override the hooks."""

    pair: ClassVar[Callable[..., CandidatePair]] = CandidatePair
    rules: tuple[Callable[[Any], Verdict | None], ...] = BASE_RULES
    """Asked in order; the first that settles the pair decides, and if none does it is allowed."""

    def __init__(self, options: InstructionFusion, module: Module, recorder: Recorder) -> None:
        self.module = module
        self.recorder = recorder
        self.release = options.release
        self.rules = in_force(self.rules, options.release)
        self.state = FusionState(options.may_duplicate, options.release, options.settings, self.is_expensive)

    def computations(self) -> Computations:
        """The computations to visit, in order (`GetFusionComputations`)."""
        found = non_fusion_computations(self.module)
        return [c for c in found if not is_embedded(c)] if self.release.embedded_computations_stay else found

    def prepare(self) -> None:
        """Called once before the first computation."""

    def is_expensive(self, instruction: Instruction) -> bool:
        return is_expensive(instruction)

    def choose_kind(self, producer: Instruction, consumer: Instruction) -> str:
        """The kind of the fusion of the two (`ChooseKind`)."""
        return "kLoop"

    def should_fuse(self, consumer: Instruction, operand_index: int) -> Verdict:
        """The rules' answer for one pair (`ShouldFuse`)."""
        pair = self.pair(consumer.operands[operand_index], consumer, operand_index, self.state)
        verdict = first_verdict(self.rules, pair, self.state.settings)
        return verdict or Verdict(NOTHING_AGAINST)

    def holds(self, refusal: Verdict, producer: Instruction, fusion: Instruction) -> bool:
        """True if a refusal holds until the fusion takes a user of `producer` in."""
        return False

    def unfusible(self, computation: Computation) -> dict[Instruction, Verdict]:
        """Producers refused before any pair is looked at (`ComputeGloballyUnfusible`)."""
        if not self.state.settings.enables(CANNOT_BE_DUPLICATED):
            return {}
        may_fuse = lambda consumer, number: self.should_fuse(consumer, number).allows  # noqa: E731
        found = globally_unfusible(computation, may_fuse)
        return {x: Verdict(CANNOT_BE_DUPLICATED, figures) for x, figures in found.items()}

    def fuse_instruction(self, fusion: Instruction, producer: Instruction) -> None:
        """Move the producer in (`FuseInstruction`)."""
        if producer.is_fusion:
            merge_fusion(fusion, producer)
        else:
            append_producer(fusion, producer)

    def run(self) -> bool:
        self.prepare()
        return any_change(map(self._run_on, self.computations()))

    def _run_on(self, computation: Computation) -> bool:
        changed = False
        unfusible = self.unfusible(computation) if self.state.may_duplicate else {}
        queue = ReversePostOrderQueue(computation)
        while (entry := queue.next()) is not None:
            consumer, numbers = entry
            if not consumer.is_fusion and not is_fusible(consumer):
                continue
            for number in numbers:
                producer = consumer.operands[number]
                if producer in queue.refused[consumer]:
                    self.recorder.repeat()
                    continue
                fusion = self._consider(consumer, number, unfusible)
                if isinstance(fusion, Verdict):
                    lasting = fusion.rule.lasting
                    if consumer.is_fusion and (lasting or self.holds(fusion, producer, consumer)):
                        queue.settle(consumer, producer, lasting)
                    continue
                changed = True
                queue.fused(fusion, producer)
                if not producer.users and not producer.is_root:
                    unfusible.pop(producer, None)
                    queue.remove(producer)
                    producer.drop_all_control_dependencies()
                    computation.remove_instruction(producer)
                if fusion is not consumer:
                    unfusible.pop(consumer, None)
                break
        return changed

    def _consider(
        self, consumer: Instruction, number: int, unfusible: dict[Instruction, Verdict]
    ) -> Instruction | Verdict:
        """Decide one pair, record it, and apply it when allowed; the fusion, or the refusal."""
        producer = consumer.operands[number]
        if is_fusible(producer):
            verdict = unfusible.get(producer) or self.should_fuse(consumer, number)
        else:
            message = f"Operand ({producer.name}) is not fusible"
            verdict = Verdict(OPERAND_NOT_FUSIBLE, message=message)
        if verdict.allows:
            name = consumer.name
            prefix = f"{producer.opcode}_{consumer.opcode}_"
            fusion = fuse_in_place_of(consumer, self.choose_kind(producer, consumer), prefix)
            self.state.reused.fused(producer, fusion)
            for x in (producer, *producer.operands):
                self.state.uses.pop(x, None)
            self.fuse_instruction(fusion, producer)
            self.recorder.fuse(
                producer,
                name,
                fusion,
                rule=verdict.rule,
                created=fusion is not consumer,
                duplicated=bool(producer.users) or producer.is_root,
                reason=verdict.rule.message or None,
                figures=verdict.figures,
            )
            return fusion
        self.recorder.ineligible(producer, consumer, verdict)
        return verdict
