"""GPU multi-output fusion (`xla/backends/gpu/transforms/multi_output_fusion.cc`)."""

from dataclasses import field

from hlofuse.analysis.components import MergedOrder
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.summary_table import SharedTables
from hlofuse.cost.gpu.ticks import INFINITE, microseconds
from hlofuse.ir.fusing import fuse_in_place_of, merge_extra_output, set_fusion_kind
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.passes.base import DevicePass
from hlofuse.rules import gpu_multi_output_fusion as rules
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.gpu_fusible import choose_kind, fusible_computations, is_nested_variadic_reduction
from hlofuse.rules.settings import first_verdict, pair_refusal
from hlofuse.rules.verdict import Verdict
from hlofuse.trace import Recorder


class GpuMultiOutputFusion(DevicePass, kw_only=True):
    """`multi_output_fusion` on GPU: siblings first, then a producer with one of its consumers."""

    name = "multi_output_fusion"
    tables: SharedTables | None = field(default=None, compare=False, repr=False)

    def run(self, module: Module, recorder: Recorder) -> bool:
        model = self.kernels(self.tables)
        changed = False
        for computation in fusible_computations(module, self.release):
            changed |= _Driver(computation, model, self, recorder).run()
        return changed


class _Driver:
    def __init__(
        self, computation: Computation, model: KernelModel, options: GpuMultiOutputFusion, recorder: Recorder
    ) -> None:
        self._computation = computation
        self._model = model
        self._settings = options.settings
        self._recorder = recorder
        self._reach = MergedOrder(computation)
        self._state = rules.MultiOutputState(model, options.settings, self._reach)

    def run(self) -> bool:
        changed = False
        for producer in reversed(self._computation.post_order()):
            if producer.computation is None:
                continue
            if producer.is_constant and self._settings.enables(rules.IS_CONSTANT):
                self._refuse(
                    producer, None, Verdict(rules.IS_CONSTANT, message=f"{producer.name} is a constant.")
                )
                continue
            if producer.fusion_kind == "kCustom":
                continue
            changed |= self._fuse_siblings(producer)
            consumer = self._best_consumer(producer)
            if consumer is not None:
                name = consumer.name
                kind = choose_kind(producer, consumer, self._model)
                times = self._model.multi_output_times(producer, consumer)
                self._forget(producer, consumer)
                fusion = consumer
                if not consumer.is_fusion:
                    fusion = fuse_in_place_of(consumer, kind)
                    self._reach.replace(consumer, fusion)
                self._merge(fusion, producer)
                created = fusion is not consumer
                self._record(producer, name, fusion, "multi-output", rules.SAVES_TIME, times, created=created)
                changed = True
        return changed

    def _fuse_siblings(self, parent: Instruction) -> bool:
        scalar = parent.is_array and parent.shape.is_effective_scalar
        if scalar and self._settings.enables(rules.IS_SCALAR):
            operands = ", ".join(o.name for o in parent.operands)
            message = f"Operand {parent.name} = {parent.opcode}({operands}) is not profitable"
            self._refuse(parent, None, Verdict(rules.IS_SCALAR, message=message))
            return False
        if parent.user_count < 2:
            return False
        siblings = [x for x in parent.users if self._is_candidate(x)]
        siblings.sort(key=_preference, reverse=True)
        changed = False
        for k, fusion in enumerate(siblings):
            if not fusion.is_fusion:
                break  # sorted: no fusion comes any more
            later = k + 1
            while later < len(siblings):
                other = siblings[later]
                pair = rules.SiblingPair(fusion, other, parent, self._state)
                verdict = pair_refusal(rules.SIBLING_RULES, pair, self._settings)
                if verdict is not None:
                    self._refuse(other, fusion, verdict, both_read=parent.name)
                    later += 1
                    continue
                self._join(fusion, other)
                del siblings[later]
                changed = True
        return changed

    def _is_candidate(self, user: Instruction) -> bool:
        """`IsSiblingFusionCandidate`."""
        if not user.users or not rules.is_possible_root(user, self._model):
            return False
        if is_nested_variadic_reduction(user, self._model):
            return False
        return not user.is_multi_output_fusion or all(u.is_get_tuple_element for u in user.users)

    def _join(self, fusion: Instruction, other: Instruction) -> None:
        name, is_input = fusion.name, other.fusion_kind == "kInput"
        unfused = self._ticks(fusion, other)
        self._forget(fusion, other)
        self._merge(fusion, other)
        if is_input:
            set_fusion_kind(fusion, "kInput")
        # XLA does not ask what joining saves; who reads the record does.
        self._record(other, name, fusion, "sibling", rules.SHARED_READ, (self._ticks(fusion), unfused))

    def _best_consumer(self, producer: Instruction) -> Instruction | None:
        """`GetProducerConsumerMultiOutputFusionCandidates` and the choice among them."""
        users = producer.users
        if not users or (len(users) == 1 and not users[0].is_multi_output_fusion):
            return None
        verdict = first_verdict(
            rules.PRODUCER_RULES, rules.LoneProducer(producer, self._state), self._settings
        )
        if verdict is not None:
            self._refuse(producer, None, verdict)
            return None
        candidates = []
        for consumer in users:
            pair = rules.ProducerPair(producer, consumer, self._state)
            verdict = pair_refusal(rules.CONSUMER_RULES, pair, self._settings)
            if verdict is not None:
                self._refuse(producer, consumer, verdict)
            else:
                candidates.append(consumer)
        best = max(candidates, key=_preference, default=None)
        for consumer in candidates:
            if consumer is not best:
                self._refuse(producer, consumer, Verdict(rules.ANOTHER_PREFERRED))
        return best

    def _merge(self, fusion: Instruction, other: Instruction) -> None:
        self._reach.merge(fusion, other)
        merge_extra_output(fusion, other)
        self._model.changed(fusion)

    def _forget(self, *instructions: Instruction) -> None:
        for instruction in instructions:
            self._model.forget(instruction)

    def _refuse(
        self, producer: Instruction, consumer: Instruction | None, verdict: Verdict, **more: str
    ) -> None:
        found = Verdict(verdict.rule, {**verdict.figures, **more}, verdict.message)
        self._recorder.ineligible(producer, consumer, found)

    def _record(
        self,
        producer: Instruction,
        consumer: str,
        fusion: Instruction,
        kind: str,
        rule: Rule,
        times: tuple[int, int],
        *,
        created: bool = False,
    ) -> None:
        """`times`: ticks of one kernel and of two, launches included."""
        figures = {}
        if max(times) < INFINITE:
            figures = {"us_fused": microseconds(times[0]), "us_unfused": microseconds(times[1])}
        self._recorder.fuse(
            producer, consumer, fusion, rule=rule, kind=kind, created=created, figures=figures
        )

    def _ticks(self, *kernels: Instruction) -> int:
        """Estimated time of some kernels, launches included."""
        return sum(self._model.device.launch_ticks + self._model.run_time(k).ticks for k in kernels)


def _preference(instruction: Instruction) -> int:
    """`FusionPriority`."""
    if not instruction.is_fusion:
        return 0
    return 2 if instruction.is_multi_output_fusion else 1
