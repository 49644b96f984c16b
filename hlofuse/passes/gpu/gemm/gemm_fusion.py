"""Fuses a matrix product with what is around it (`xla/backends/gpu/transforms/gemm_fusion.cc`)."""

import math
from collections import deque

from hlofuse.cost.gpu.backend_config import gpu_config_text
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.tiling.model import TilingModel
from hlofuse.cost.tiling.triton_support import TritonSupport
from hlofuse.ir import (
    Attributes,
    Computation,
    Instruction,
    InstructionSequence,
    Module,
    post_order,
    replace,
    values,
)
from hlofuse.passes.base import ReleasePass, any_change, attempt, replaced, visit
from hlofuse.passes.common.calls import filled
from hlofuse.passes.common.dots import DotDimensions
from hlofuse.passes.common.make import added
from hlofuse.passes.gpu.layout_assignment import is_tiny
from hlofuse.releases import AROUND_FUSION, Release
from hlofuse.rules.gpu_fusible import product_computations
from hlofuse.rules.rewrites import EPILOGUE_READERS, EPILOGUE_USER, TRITON_PRODUCT
from hlofuse.rules.verdict import Verdict
from hlofuse.trace import Recorder
from .propagation import (
    NO_SPLIT,
    DimensionOrder,
    DotProperties,
    added_parameters,
    can_handle_gemm,
    carried,
    carried_if_worth,
    combined,
)
from .tileable import TileableFusion

_MOST_PARAMETERS = 4  # the limit of parameters for one operand of the dot
_OF_PARTS = values("multiply negate bitcast reshape copy transpose convert broadcast slice")
"""Operations that may be done to the parts of a sum (`IsDistributiveOverAddition`)."""
_CONFIG = gpu_config_text("fusion_backend_config", {"kind": "__triton_gemm"})


class GemmFusion(ReleasePass):
    name = "triton-gemm-rewriter"
    device: DeviceDescription

    def run(self, module: Module, recorder: Recorder) -> bool:
        release = self.release if self.release.products_fused_by_tiling else AROUND_FUSION
        support = TritonSupport(self.device, replace(release, pads_only_in_products=False))
        tilings = TilingModel(self.device, release)

        def handle(dot: Instruction) -> bool:
            if is_tiny(dot) and dot.element_type in ("f16", "f32", "bf16"):
                return False
            if support.instruction(dot) is not None:
                return False
            if not self.release.products_of_any_type and not can_handle_gemm(dot, self.device):
                return False
            if release.products_fused_by_tiling:
                space = TileableFusion(dot, support, tilings)
                if (found := space.fuse()) is None:
                    return False
                body = filled(Computation(f"gemm_fusion_{dot.name}_computation"), found.fused_computation)
                fusion = _create_fusion(dot, body, space.inputs(found))
                _take_place(space.output, fusion, dot.name, recorder)
                return True
            return _Growing(dot, self.device, self.release).fuse(recorder)

        attempted = attempt(handle, recorder)
        computations = product_computations(module, self.release)
        return any_change(visit(c, attempted, values("dot")) for c in computations)


class _Growing:
    """A fusion that grows from one dot, to its operands and then to its users."""

    def __init__(self, dot: Instruction, device: DeviceDescription, release: Release) -> None:
        self._dot = dot
        contracting = DotDimensions.of(dot).contracting(0)
        contracted = math.prod(dot.operand.sizes[d] for d in contracting)
        self._side = DotProperties(device, release, contracted, -1, -1)
        self._into_sums = release.products_end_in_sums
        self._body = Computation(f"gemm_fusion_{dot.name}_computation")
        self._inputs = list[Instruction]()

    def fuse(self, recorder: Recorder) -> bool:
        """`CreateDotFusion`, and the fusion in the place of what it computes."""
        dot = self._dot
        dims = DotDimensions.of(dot)
        operands, split = [], NO_SPLIT
        for number, operand in enumerate(dot.operands):
            free = dims.free(number, operand.rank)
            if len(free) != 1 or len(dims.contracting(number)) != 1:
                return False
            splittable = free[0] if number == 0 and not dims.lhs_batch else -1
            side = replace(self._side, free=free[0], splittable=splittable)
            fused, needed = self._fuse_toward_operands(
                operand, DimensionOrder.of(operand.shape), side, NO_SPLIT, _MOST_PARAMETERS
            )
            operands.append(fused)
            if number == 0:
                split = needed
        inner = self._add(dot.clone(operands))
        side = replace(self._side, splittable=0 if split > NO_SPLIT else -1)
        output, root = self._toward_users(dot, inner, DimensionOrder.of(dot.shape), side, split)
        self._body.root = root
        _take_place(output, _create_fusion(dot, self._body, self._inputs), dot.name, recorder)
        return True

    def _add(self, instruction: Instruction) -> Instruction:
        self._body.append_parsed(instruction)
        return instruction

    def _parameter(self, outer: Instruction) -> Instruction:
        number = len(self._inputs)
        self._inputs.append(outer)
        return self._add(Instruction(f"parameter_{number}", outer.shape, "parameter", payload=str(number)))

    def _fuse_toward_operands(
        self,
        root: Instruction,
        order: DimensionOrder,
        side: DotProperties,
        split: int,
        most: int | None,
    ) -> tuple[Instruction, int]:
        """The instruction for `root` inside the fusion, and the split by now (`FuseTowardOperands`)."""
        nodes = list[tuple[Instruction, DimensionOrder]]()
        ids = dict[object, int]()
        below = dict[int, list[int]]()

        def node(hlo: Instruction, at: DimensionOrder) -> tuple[int, bool]:
            key = (hlo, at.key())
            if key in ids:
                return ids[key], False
            ids[key] = len(nodes)
            nodes.append((hlo, at))
            return ids[key], True

        queue = deque([node(root, order)[0]])
        edge = {0}
        attempts = 0
        while len(queue) > attempts:
            number = queue.popleft()
            hlo, at = nodes[number]
            if most is not None and len(edge) + added_parameters(hlo) > most:
                queue.append(number)
                attempts += 1
                continue
            attempts = 0
            if hlo.opcode in ("parameter", "dynamic-slice"):
                continue
            found = carried_if_worth(hlo, at, side)
            if found is None or (together := combined(split, found[1])) is None:
                continue
            split = together
            edge.discard(number)
            below[number] = []
            for operand in hlo.operands:
                inner, is_new = node(operand, found[0].get(operand, DimensionOrder()))
                below[number].append(inner)
                if is_new:
                    edge.add(inner)
                    queue.append(inner)
        done = dict[int, Instruction]()
        for number in post_order([0], lambda k: below.get(k, [])):  # `BuildFusionTowardOperandsImpl`
            hlo = nodes[number][0]
            if number in below:
                done[number] = self._add(hlo.clone([done[k] for k in below[number]]))
            else:
                done[number] = self._parameter(hlo)
        return done[0], split

    def _toward_users(
        self,
        hlo: Instruction,
        fused: Instruction,
        order: DimensionOrder,
        side: DotProperties,
        split: int,
    ) -> tuple[Instruction, Instruction]:
        """The last operation fused, outside and inside (`FuseTowardUsers`)."""
        while hlo.user_count == 1:
            user = hlo.user
            if user.opcode not in _OF_PARTS and not self._into_sums:
                break
            found = carried_if_worth(user, order, side, operand=user.operands.index(hlo))
            if found is None or (together := combined(split, found[1])) is None:
                break
            split, user_order = together, found[0][user]
            operands = [fused]
            if user.operand_count > 1:
                back = carried(user, user_order, side, to_operands=True)
                if back is None or (together := combined(split, back[1])) is None:
                    break
                split, operands = together, []
                for operand in user.operands:
                    if operand is hlo:
                        operands.append(fused)
                        continue
                    inner, split = self._fuse_toward_operands(operand, back[0][operand], side, split, None)
                    operands.append(inner)
            hlo, order = user, user_order
            fused = self._add(user.clone(operands))
        return hlo, fused


def _create_fusion(dot: Instruction, body: Computation, inputs: InstructionSequence) -> Instruction:
    computation = dot.parent
    computation.parent.add_computation(body)
    raw = {"kind": "kCustom", "calls": f"%{body.name}", "backend_config": _CONFIG}
    raw |= dot.attributes.given("metadata")
    shape, name = body.root.shape, f"gemm_fusion_{dot.name}"
    fusion = Instruction(name, shape, "fusion", inputs, Attributes(raw=raw), called=[("calls", body)])
    return computation.add_instruction(fusion)


def _take_place(output: Instruction, fusion: Instruction, name: str, recorder: Recorder) -> None:
    readers, end = list(dict.fromkeys(output.users)), output.name
    same = output.shape == fusion.shape
    replaced(output, fusion if same else added(fusion, "bitcast", output.shape, [fusion]))
    recorder.created_instructions(name, [fusion], TRITON_PRODUCT)
    _record_end(end, fusion, readers, recorder)


def _record_end(
    value: str,
    fusion: Instruction,
    readers: InstructionSequence,
    recorder: Recorder,
) -> None:
    """Record why what reads the value was not taken in."""
    if len(readers) == 1 and readers[0].operands.count(fusion) == 1:
        if readers[0].opcode != "tuple":
            reason = f"{value} is read by {readers[0].name}, and the GEMM fusion cannot contain this"
            reason += f" {readers[0].opcode}"
            recorder.ineligible(fusion, readers[0], Verdict(EPILOGUE_USER, message=reason))
        return
    names = [r.name for r in readers]
    shown = ", ".join(names if len(names) <= 4 else [*names[:4], "…"])
    reason = f"{value} is read by {len(readers)} operations ({shown}), and the GEMM fusion ends there"
    for reader in readers:
        recorder.ineligible(fusion, reader, Verdict(EPILOGUE_READERS, message=reason))
