"""XLA's record of PriorityFusion compared with the tiled model, for what involves Triton fusions.

Only the first record of a producer is looked at: it was computed before anything was fused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from hlofuse.cost.gpu.backend_config import FusionConfig, fusion_config, is_generic_triton_fusion
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.estimate import Estimate
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.ticks import fp32, microseconds
from hlofuse.cost.tiling.constraints import Refusal, Tiling
from hlofuse.cost.tiling.model import TilingModel
from hlofuse.cost.tiling.triton_support import TritonSupport
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.trace.priority_record import IneligibleStep, PriorityStep
from ..records import FirstStep, load_corpus_case

KERNEL_LAUNCH = 4000
_TRITON_REASONS = (
    "Fusion can not be tiled",
    "Unsupported ",
    "Concatenate operand",
    "Only high padding",
    "No-op pad",
    "Only scalar constants",
    "Reduction ",
    "Multi-dimension",
    "only bitcasts",
    "bitcasts with",
    "F8E4M3FN",
    "S4 is",
)


@dataclass
class Checker:
    """Counts agreements by kind and keeps the disagreements."""

    device: DeviceDescription
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tiling = TilingModel(self.device, RELEASE)
        self.support = TritonSupport(self.device, RELEASE)

    def note(self, what: str, good: bool, text: str) -> None:
        self.counts[f"{what} {'ok' if good else 'bad'}"] += 1
        if not good:
            self.wrong.append(f"{what}: {text}")

    def pair(self, producer: Instruction, consumer: Instruction) -> Tiling | Refusal:
        """`CanFuseTriton`, less the rules that are not Triton's."""
        for part in (producer, consumer):
            reason = self.support.refusal(part)
            if reason is not None:
                return Refusal((reason,))
        return self.tiling.best_tiling(producer, consumer)

    def check(self, name: str, module: Module, steps: dict[str, FirstStep]) -> None:
        """The first records that involve Triton fusions."""
        kernels = KernelModel(self.device, RELEASE, self._estimate)
        copies: dict[object, list[Tiling]] = {}
        triton: list[tuple[Instruction, FirstStep]] = []
        for computation in module.computations:
            if computation.fusion is not None:
                continue
            for producer in computation:
                involved = [u for u in producer.users if self._is_triton(producer, u)]
                for user in involved:
                    outcome = self.pair(producer, user)
                    if isinstance(outcome, Tiling):
                        copies.setdefault(self._alias(producer, user), []).append(outcome)
                step = steps.get(producer.name)
                if involved and step is not None:
                    triton.append((producer, step))
        for producer, step in triton:
            if isinstance(step, PriorityStep):
                self._priority(name, kernels, producer, step, copies)
            else:
                self._refusal(name, producer, step)

    @staticmethod
    def _is_triton(producer: Instruction, user: Instruction) -> bool:
        if user.opcode in ("bitcast", "get-tuple-element", "tuple", "while", "conditional", "call"):
            return False
        return is_generic_triton_fusion(producer) or is_generic_triton_fusion(user)

    def _alias(self, producer: Instruction, user: Instruction) -> object:
        """Pairs XLA takes for the same, although they may share other operands."""
        keys: list[object] = [user.operands.index(producer)]
        for part in (producer, user):
            if part.opcode == "fusion":
                view = self.tiling._view(part)
                keys.append(view if isinstance(view, Refusal) else view.key)
            else:
                keys.append(self.tiling._kinds.inside(part).number)
        return tuple(keys)

    def _estimate(self, fusion: Instruction) -> Estimate:
        tiling = self.tiling.run_time(fusion)
        assert isinstance(tiling, Tiling), str(tiling)
        return tiling.estimate

    def _priority(
        self,
        name: str,
        kernels: KernelModel,
        producer: Instruction,
        step: PriorityStep,
        copies: dict[object, list[Tiling]],
    ) -> None:
        count = len(producer.users)
        unfused = KERNEL_LAUNCH * (count + 1) + kernels.run_time(producer).ticks
        choices: list[list[int]] = []
        for user in producer.users:
            unfused += kernels.run_time(user).ticks
            if self._is_triton(producer, user):
                outcome = self.pair(producer, user)
                if isinstance(outcome, Refusal):
                    self.note("eligible", False, f"{name} {producer.name} {user.name}: {outcome}")
                    return
                equivalent = copies[self._alias(producer, user)]
                choices.append(list(dict.fromkeys([x.estimate.ticks for x in (outcome, *equivalent)])))
            else:
                choices.append([kernels.pair_time(producer, user).ticks])
        sums = [KERNEL_LAUNCH * count + sum(ticks) for ticks in product(*choices)]
        want = fp32(step.us_fused), fp32(step.us_unfused)
        got = [(microseconds(s), microseconds(unfused)) for s in sums]
        good = want in got
        self.note(
            "priority" if want == got[0] or not good else "twin", good, f"{name} {producer.name} {want} {got}"
        )

    def _refusal(self, name: str, producer: Instruction, step: IneligibleStep) -> None:
        reason = step.reason
        actual = [
            str(outcome)
            for user in producer.users
            if self._is_triton(producer, user) and isinstance(outcome := self.pair(producer, user), Refusal)
        ]
        if reason in actual:
            self.note("refusal", True, "")
        elif reason.startswith(_TRITON_REASONS):
            self.note("refusal", False, f"{name} {producer.name}:\n  XLA  {reason}\n  ours {actual}")
        else:
            self.counts["refusal of another rule"] += 1

    def check_created(self, name: str, folder: Path) -> None:
        """Tile sizes of the Triton fusions that the pass made, as they stand in its dump."""
        dumps = sorted(folder.glob("*-priority-fusion.hlo"))
        if not dumps:
            return
        before, _ = load_corpus_case(folder)
        self.compare_tiles(name, before, parse_module(dumps[0].read_text(), str(dumps[0])))

    def compare_tiles(self, name: str, before: Module | None, after: Module) -> None:
        """The best tiling of each Triton fusion in `after` that is not in `before` is the one it has."""
        cached = before.instructions() if before is not None else ()
        old = {(i.name, fusion_config(i)) for i in cached}
        for fusion in list(after.instructions()):
            config = fusion_config(fusion)
            if not is_generic_triton_fusion(fusion) or config is None or (fusion.name, config) in old:
                continue
            best = self.tiling.best_tiling(fusion)
            good = isinstance(best, Tiling) and best.config == config
            if not good:
                # Small constants join last, after the tiles were chosen; which ones, the text does not say.
                good = any(b == config for b in self._with_outer_constants(fusion))
            self.note("tiles", good, f"{name} {fusion.name} {config} {str(best)[:200]}")

    def _with_outer_constants(self, fusion: Instruction) -> Iterator[FusionConfig]:
        body = fusion.fused_computation
        for constant in [i for i in body if i.opcode == "constant"]:
            constant.opcode, constant.payload = "parameter", str(len(fusion.operands))
            body.parameters.append(constant)
            fusion.append_operand(Instruction("outside", constant.shape, "constant", payload="0"))
            best = TilingModel(self.device, RELEASE).best_tiling(fusion)
            if isinstance(best, Tiling):
                yield best.config
