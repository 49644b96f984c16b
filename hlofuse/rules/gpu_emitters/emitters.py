"""Fusions for which XLA writes the code: by their roots and the operations behind them, the heroes."""

from typing import Any

from hlofuse.cost.gpu.atoms import Atom
from hlofuse.cost.gpu.launch import first_reduction
from hlofuse.ir.graph import Instruction
from hlofuse.rules.gpu_emitters.candidate import GpuKernel
from hlofuse.rules.gpu_emitters.dots import hero_names, why_a_loop
from hlofuse.rules.gpu_emitters.operations import LAST
from hlofuse.rules.gpu_fusible import outputs_of
from hlofuse.rules.verdict import runner

_KIND = "xla/service/gpu/hlo_fusion_analysis.cc: GetEmitterFusionKind"
_CODE = "xla/backends/gpu/codegen/emitters"


@runner(
    code="EM040",
    title="The reduction emitter",
    condition="The hero of an output is a reduce that a block of threads computes faster than one thread per"
    " result, and the kernel can compute all other outputs with it (equal reductions, or as many elements as"
    " the reduction reads).",
    why="The threads of a block share the elements of a row (row reduction) or a strip of columns (column"
    " reduction) and add up through shared memory. Reads are coalesced and no result depends on a single"
    " thread.",
    advice="Reduce the last dimension (rows): it is read in order. Rows of at least 32 elements keep a warp"
    " busy; shorter rows share a warp if the length is a power of two.",
    mirrors=_KIND + f"; xla/service/gpu/reduction_utils.cc: IsUnnestedReductionFasterThanElemental; "
    f"{_CODE}/reduction.cc: CreateReductionFusion",
    runs="reduction emitter",
)
def reduction(kernel: GpuKernel) -> dict[str, Any] | None:
    if kernel.launch.kind != "reduction":
        return None
    first = first_reduction(kernel.model.kernel(kernel.instruction))
    assert first is not None
    assert first.reduction is not None
    is_row, (outer, middle, minor) = first.reduction
    lines, length, word = (middle, outer * minor, "row") if is_row else (outer * minor, middle, "column")
    reduces = f"{lines:,} {word}{'s' if lines != 1 else ''} of {length:,}"
    return {"hero": hero_names(kernel), "reduces": reduces}


@runner(
    code="EM041",
    title="The transpose emitter",
    condition="One tiled transpose feeds the outputs (the last dimension moves, or stays and is short; sides"
    " of at least 16, or 8 for large arrays), and every other output has the layout of its input.",
    why="Tiles are read along one dimension and written along the other through shared memory, so both are"
    " coalesced.",
    advice="A transpose at a kernel's boundary is cheap this way; two different transposes make the kernel a"
    " loop.",
    mirrors="xla/service/gpu/ir_emission_utils.cc: GetDescriptionForTiledTransposeEmitter; "
    f"{_CODE}/transpose.cc: CreateTransposeFusion",
    runs="transpose emitter",
)
def transpose(kernel: GpuKernel) -> dict[str, Any] | None:
    if kernel.launch.kind != "transpose":
        return None
    heroes = [hero for hero, _ in kernel.model.kernel(kernel.instruction).heroes]
    tiled = next(h.transpose for h in heroes if h is not None and h.transpose is not None)
    sizes = "×".join(map(str, tiled.dimensions))
    order = ",".join(map(str, tiled.permutation))
    return {"hero": hero_names(kernel), "permutes": f"to {sizes} by {order}"}


@runner(
    code="EM042",
    title="The scatter emitter",
    condition="The only output is a scatter.",
    why="A thread takes an element (or a vector) of the updates and adds it at its index, atomically unless"
    " the indices are unique.",
    advice="Pass unique_indices=True and indices_are_sorted=True if they hold: no atomics, and runs of one"
    " index add up in registers.",
    mirrors=_KIND + f"; {_CODE}/scatter.cc: CreateScatterFusion",
    runs="scatter emitter",
)
def scatter(kernel: GpuKernel) -> dict[str, Any] | None:
    if kernel.launch.kind != "scatter":
        return None
    root = outputs_of(kernel.instruction)[0]
    flags = [name for name in ("indices_are_sorted", "unique_indices") if root.attributes.raw(name) == "true"]
    return {"hero": hero_names(kernel), "updates": _shape(root.operands[-1])} | (
        {"given": " and ".join(flags).replace("_", " ")} if flags else {}
    )


@runner(
    code="EM043",
    title="The sort emitter",
    condition="The only output of the fusion is a sort.",
    why="SortIotaFusion fuses an iota among the keys or payload into the sort; the rest is as in EM013.",
    mirrors=_KIND,
    runs="bitonic sort",
)
def sort(kernel: GpuKernel) -> dict[str, Any] | None:
    return {"hero": hero_names(kernel)} if kernel.launch.kind == "sort" else None


@runner(
    code="EM044",
    title="The concatenate emitter",
    condition="The hero of the only output is a concatenate of at most 4 operands.",
    why="All threads of a block work on the same operand, so no thread selects the operand per element. Code"
    " is generated for every operand, hence the limit.",
    advice="With more than 4 parts, concatenate in steps, or keep the parts separate and let the user read"
    " them.",
    mirrors="xla/service/gpu/hlo_fusion_analysis.cc: UseConcatenateFusion; "
    f"{_CODE}/concatenate.cc: ConcatenateFusion::launch_dimensions",
    runs="concatenate emitter",
)
def concatenate(kernel: GpuKernel) -> dict[str, Any] | None:
    if kernel.launch.kind != "concatenate":
        return None
    hero = kernel.model.kernel(kernel.instruction).heroes[0][0]
    assert hero is not None
    return {"hero": hero_names(kernel), "joins": _joined(hero)}


@runner(
    code="EM045",
    title="In-place update",
    condition="Every output is a dynamic-update-slice into an input that the kernel does not read elsewhere.",
    why="The result reuses the input's buffer, so only the update is computed and written. Buffer assignment"
    " decides whether they share memory; if not, a copy comes first.",
    advice="Do not use the old array after the update; donate it if it is an argument.",
    mirrors="xla/codegen/ir_emission_utils.cc: CanEmitFusedDynamicUpdateSliceInPlace; "
    f"{_CODE}/in_place_dynamic_update_slice.cc: InPlaceDynamicUpdateSliceFusion::launch_dimensions",
    runs="in-place update",
)
def in_place_update(kernel: GpuKernel) -> dict[str, Any] | None:
    first = kernel.model.kernel(kernel.instruction).roots[0].update
    if (
        kernel.launch.kind != "loop"
        or first is None
        or not kernel.model.kernel(kernel.instruction).updates_in_place
    ):
        return None
    return {"update": first.shape.text_without_layout, "of": _shape(outputs_of(kernel.instruction)[0])}


@runner(
    code="EM046",
    title="The slices emitter",
    condition="All outputs are plain slices of arrays of one shape.",
    why="Horizontal input fusion creates such kernels: threads traverse the array once and write each slice.",
    mirrors=_KIND,
    runs="slices emitter",
    history="Until 0.4.35; later a loop.",
)
def slices(kernel: GpuKernel) -> dict[str, Any] | None:
    return {"slices": len(kernel.summary.roots)} if kernel.launch.kind == "slices" else None


@runner(
    code="EM049",
    title="The loop emitter",
    condition="No other emitter applies.",
    why="One thread computes one element of the result (or up to 4 adjacent ones; more on Blackwell) with all"
    " its operands.",
    advice="Suits elementwise work. If the kernel contains an operation of another emitter, its line gives"
    " the reason.",
    mirrors=_KIND + f"; {_CODE}/loop.cc: LoopFusion::launch_dimensions; "
    "xla/service/gpu/gpu_fusible.cc: ComputeLoopFusionConfig",
    runs="loop emitter",
)
def loop(kernel: GpuKernel) -> dict[str, Any] | None:
    roots = outputs_of(kernel.instruction)
    more = f" and {len(roots) - 1} more" if len(roots) > 1 else ""
    found: dict[str, Any] = {"result": f"{roots[0].name} {_shape(roots[0])}{more}"}
    because = why_a_loop(kernel)
    return found | {"because": because} if because else found


def _joined(hero: Atom) -> str:
    return f"{len(hero.operands)} along dimension {(hero.attributes[0] or '{0}').strip('{}')}"


def _shape(instruction: Instruction) -> str:
    return instruction.shape.text_without_layout


RULES = (*LAST, reduction, transpose, scatter, sort, concatenate, in_place_update, slices, loop)
