"""Passes that make operations calls of kernels of XLA's."""

import json
import math

from hlofuse.analysis.elementwise import is_fusible
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir import Instruction, Module, Shape, values
from hlofuse.ir.names import NameUniquer
from hlofuse.passes.base import DevicePass, Pass, VisitPass, expand_each, find_each, replaced
from hlofuse.passes.common.make import added, bare_element, get_tuple_element
from hlofuse.passes.common.shapes import array
from hlofuse.passes.sort.topk import is_stable, is_topk_call
from hlofuse.trace import Recorder

_TARGET = "__cublas$triangularSolve"
_POINTERS = 2 * 8  # bytes of workspace for each system of a batch


class TriangularSolveRewriter(Pass):
    """Triangular systems that cuBLAS solves (`xla/backends/gpu/transforms/triangular_solve_rewriter.cc`)."""

    name = "triangular-solve-rewriter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = find_each(module, lambda x: x.opcode == "triangular-solve")
        return expand_each(found, _call, recorder)


def _call(solve: Instruction) -> None:
    batch = math.prod(solve.second.sizes[:-2])
    workspace = array("s8", [0 if batch == 1 else _POINTERS * batch])
    attributes = solve.attributes
    options = {
        "left_side": attributes.raw("left_side") == "true",
        "lower": attributes.raw("lower") == "true",
        "unit_diagonal": attributes.raw("unit_diagonal") == "true",
        "transpose_a": attributes.raw("transpose_a") or "NO_TRANSPOSE",
    }
    call = added(
        solve,
        "custom-call",
        Shape.tuple_of([solve.shape, workspace]),
        solve.operands,
        like=solve,
        name="triangular-solve",
        custom_call_target=f'"{_TARGET}"',
        backend_config=json.dumps(options, separators=(",", ":")),
    )
    replaced(solve, get_tuple_element(call, call, 0))


_MAX_SHARE_OF_ROW = 0.85


class TopkSpecializer(VisitPass):
    """Calls that a CUDA kernel of XLA's computes (`xla/backends/gpu/transforms/topk_specializer.cc`)."""

    name = "topk-specializer"
    opcodes = ("custom-call",)

    def handle(self, x: Instruction) -> bool:
        return is_topk_call(x) and _is_computed(x) and replaced(x, _specialize(x))


def _is_computed(call: Instruction) -> bool:
    """`SmallBufferOptimization`: few of many, in rows of at most one batch dimension."""
    shape = call.operand.shape
    if shape.element_type not in ("f32", "bf16") or not 1 <= shape.rank <= 2:
        return False
    size, wanted = shape.dimensions[-1], call.shape.tuple_shapes[0].dimensions[-1]
    if wanted >= _MAX_SHARE_OF_ROW * size:
        return False
    rows = shape.dimensions[0] if shape.rank == 2 else 0
    least, most = (1024, 16) if is_stable(call) else (1, _most_unstable(shape, rows, size))
    return wanted <= most and size >= least


def _most_unstable(shape: Shape, rows: int, size: int) -> int:
    """The largest k that RAFT selects unstably at an advantage."""
    if shape.element_type == "f32":
        return 256 if rows >= 64 and size >= 16384 else 128
    if 64 <= rows <= 128 and 8192 <= size <= 32768:
        return 64
    return 256 if rows >= 16 and size >= 65536 else 128


def _specialize(call: Instruction) -> Instruction:
    attributes = {"custom_call_target": '"__gpu$TopK"', "api_version": "API_VERSION_TYPED_FFI"}
    if (config := call.raw("backend_config")) is not None:
        attributes["backend_config"] = config
    called = [("called_computations", c) for c in call.called_computations]
    new = added(call, "custom-call", call.shape, call.operands, called=called, raw_attributes=attributes)
    elements = [bare_element(call, new, k) for k in range(call.tuple_size)]
    return added(call, "tuple", call.shape, elements)


_KINDS = {"kLoop": "loop", "kInput": "input", "kOutput": "output"}
_REASON = "XLA names a fusion by its kind and heroes"


class RenameFusions(DevicePass):
    """`rename_fusions`: `loop_add_fusion` calls `fused_add`, but not custom ones (`rename_fusions.cc`)."""

    name = "rename_fusions"

    def run(self, module: Module, recorder: Recorder) -> bool:
        model, found = self.kernels(), find_each(module, lambda x: x.fusion_kind in _KINDS)
        for fusion in found:
            name, heroes = fusion.name, _heroes(fusion, model)
            kind = _KINDS[fusion.fusion_kind or ""]
            fusion.name = module.instruction_names.unique(f"{kind}_{heroes}_fusion")
            fusion.fused_computation.name = module.computation_names.unique(f"fused_{heroes}")
            recorder.rewrite(fusion.computation_name, [name], [fusion], _REASON)
        return bool(found)


def _heroes(fusion: Instruction, model: KernelModel) -> str:
    """The opcodes of the heroes of all roots, each once (`MakeFusionHeroNames`)."""
    heroes = [root.hero[0] for root in model.summary(fusion).roots]
    opcodes = {hero.opcode if hero is not None else "parameter" for hero in heroes}
    return "_".join(sorted(opcodes)).replace("-", "_")


_LEFT = values("parameter custom-call fusion")


class RenameInstructions(Pass):
    """`rename-instructions`: `add.2` becomes `add.2.0` if a fusion may hold it
    (`xla/backends/gpu/transforms/add_tracking_suffix_to_instruction_names.cc`). XLA has it since 0.6.0."""

    name = "rename-instructions"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = find_each(module, lambda x: x.opcode not in _LEFT and is_fusible(x))
        for x in found:
            x.name = module.instruction_names.unique(f"{x.name}.0")
        return bool(found)


_UNDERSCORES = str.maketrans(".-;", "___")
_EXCHANGED = str.maketrans("._", "_.")


class SanitizeConstantNames(Pass):
    """No dots, dashes or semicolons; unique (`xla/backends/gpu/transforms/sanitize_constant_names.cc`)."""

    name = "sanitize-constant-names"

    def run(self, module: Module, recorder: Recorder) -> bool:
        names = NameUniquer()  # with an underscore where it has a dot
        constants = [i for i in module.instructions() if i.is_constant]
        wanted = {i: i.name.translate(_UNDERSCORES).translate(_EXCHANGED) for i in constants}
        letters = {name[:1] for name in wanted.values()}  # no name that begins with another collides
        others = (i.name.translate(_EXCHANGED) for i in module.instructions() if not i.is_constant)
        names.skip(name for name in others if name[:1] in letters)
        for i, name in wanted.items():
            i.name = names.unique(name).translate(_EXCHANGED)
            module.instruction_names.unique(i.name)
        return bool(constants)
