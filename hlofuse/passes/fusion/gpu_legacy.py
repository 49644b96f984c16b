"""XLA:GPU's fusion passes before PriorityFusion, until 0.4.35. The later one comes first here: it merges
fusions into their users (`xla/service/gpu/transforms/fusion_merger.cc`)."""

from typing import ClassVar

from hlofuse.analysis.call_sites import non_fusion_computations
from hlofuse.analysis.elementwise import is_expensive
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.merging import MergingModel
from hlofuse.ir import Computation, Computations, Instruction, Module, values
from hlofuse.ir.fusing import append_producer, fuse_in_place_of, merge_fusion
from hlofuse.passes.base import DevicePass
from hlofuse.rules import fusion_merger
from hlofuse.rules.gpu_fusible import choose_kind, fusible_computations
from hlofuse.rules.gpu_instruction_fusion import RULES, GpuFusionState, GpuPair
from hlofuse.rules.settings import first_verdict, pair_refusal
from hlofuse.rules.verdict import Verdict
from hlofuse.trace import Recorder
from .instruction_fusion import FusionDriver, InstructionFusion


class FusionMerger(DevicePass):
    """`fusion_merger`: each fusion, producers first, goes into all of its users or stays."""

    name = "fusion_merger"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in non_fusion_computations(module):
            changed |= _Driver(self, self.required_device(), recorder).run(computation)
        return changed


class _Driver:
    """One computation (`FusionInstructionMerger`)."""

    def __init__(self, options: FusionMerger, device: DeviceDescription, recorder: Recorder) -> None:
        self._settings = options.settings
        self._recorder = recorder
        self._model = MergingModel(device, options.release)
        self._state = GpuFusionState(True, options.release, self._settings, is_expensive, model=self._model)

    def run(self, computation: Computation) -> bool:
        changed = False
        for producer in computation.post_order():
            if not producer.is_fusion or producer.computation is None:
                continue
            verdict, user = self._decide(producer)
            if verdict.allows:
                self._merge(producer, verdict)
                changed = True
            else:
                self._recorder.ineligible(producer, user, verdict)
        return changed

    def _decide(self, producer: Instruction) -> tuple[Verdict, Instruction | None]:
        """`ShouldFuse`: the answer, and the user that is in the way, if it is a single one."""
        settings = self._settings
        merge = fusion_merger.Merge(producer, self._state)
        verdict = first_verdict(fusion_merger.PRODUCER_RULES, merge, settings)
        if verdict is not None:
            return verdict, None
        for user in producer.users:
            pair = GpuPair(producer, user, user.operands.index(producer), self._state)
            verdict = pair_refusal(fusion_merger.USER_RULES, pair, settings)
            if verdict is not None:
                return verdict, user
        verdict = first_verdict(fusion_merger.MERGE_RULES, merge, settings)
        if verdict is not None:
            return verdict, None
        times = self._model.merge_times(producer, producer.users)
        if times.fused > times.unfused and settings.enables(fusion_merger.SLOWER):
            return Verdict(fusion_merger.SLOWER, fusion_merger.time_figures(times)), None
        return Verdict(fusion_merger.MERGED, fusion_merger.time_figures(times)), None

    def _merge(self, producer: Instruction, verdict: Verdict) -> None:
        """`FuseIntoAllUsers`."""
        for user in list(producer.users):
            name, fusion = user.name, user
            self._model.forget(user)
            if not user.is_fusion:
                fusion = fuse_in_place_of(user, choose_kind(producer, user, self._model))
            merge_fusion(fusion, producer)
            self._model.forget(fusion)
            self._recorder.fuse(
                producer,
                name,
                fusion,
                rule=verdict.rule,
                created=fusion is not user,
                duplicated=bool(producer.users),
                figures=verdict.figures,
            )
        computation = producer.parent
        if producer is not computation.root:  # a root with users, all of them dead: XLA gives up there
            computation.remove_instruction(producer)
        self._model.forget(producer)


# XLA:GPU's instruction fusion before PriorityFusion (`xla/service/gpu/transforms/instruction_fusion.cc`).


_CHEAP_IN_HARDWARE = values("divide sqrt rsqrt exponential")


class _LegacyDriver(FusionDriver):
    pair = GpuPair
    rules = RULES

    def __init__(self, options: InstructionFusion, module: Module, recorder: Recorder) -> None:
        super().__init__(options, module, recorder)
        assert isinstance(options, GpuInstructionFusion)
        self.model = MergingModel(options.required_device(), options.release)
        self.state: GpuFusionState = GpuFusionState(
            options.may_duplicate, self.release, options.settings, self.is_expensive, model=self.model
        )

    def computations(self) -> Computations:
        return fusible_computations(self.module, self.release)

    def is_expensive(self, instruction: Instruction) -> bool:
        """Some operations are fast on a GPU (`GpuInstructionFusion::IsExpensive`)."""
        if instruction.opcode in _CHEAP_IN_HARDWARE and instruction.element_type in ("f16", "f32"):
            return False
        return is_expensive(instruction)

    def choose_kind(self, producer: Instruction, consumer: Instruction) -> str:
        return choose_kind(producer, consumer, self.model)

    def fuse_instruction(self, fusion: Instruction, producer: Instruction) -> None:
        self.state.evaluation(fusion).take_in(producer, append_producer(fusion, producer))
        self.model.changed(fusion)


class GpuInstructionFusion(InstructionFusion, DevicePass, kw_only=True):
    """`fusion` on GPU, run twice: first without computing anything twice, then with."""

    driver: ClassVar[type[FusionDriver]] = _LegacyDriver
