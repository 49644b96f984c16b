"""Fusions: those that are copies, those whose config says who runs them, and those XLA writes code for.
`NOTES` tell what became of a matrix product of the program that is not a library call."""

from hlofuse.analysis.cpu_predicates import product_as_reduce
from hlofuse.analysis.kernels import inside
from hlofuse.analysis.launches import plain_copies
from hlofuse.analysis.slice_copies import copied_dynamic_slice, copied_slice
from hlofuse.cost.gpu import backend_config as config
from hlofuse.cost.gpu.atoms import Atom
from hlofuse.cost.gpu.launch import common_reduction, first_reduction
from hlofuse.ir import Instruction, Instructions, Json
from hlofuse.rules.gpu_fusible import outputs_of
from hlofuse.rules.verdict import Answer, Figures, runner
from .unfused import GpuKernel, unsettled


@runner("EM060", "A matrix-vector product becomes multiply and reduce", runs="multiply and reduce")
def strength_reduced(kernel: GpuKernel) -> Answer:
    return product_as_reduce(kernel.instruction)


@runner("EM061", "A dot that no library supports is a loop", runs="loop emitter")
def not_a_library_call(kernel: GpuKernel) -> Answer:
    if not kernel.is_generated or kernel.config_kind:
        return None
    dot = next((i for i in inside(kernel.instruction) if i.is_dot), None)
    if dot is None:
        return None
    factors = " × ".join(o.shape.text_without_layout for o in dot.operands[:2])
    return {"product": f"{factors} → {dot.shape.text_without_layout}"}


NOTES = (strength_reduced, not_a_library_call)
"""Notes on every kernel: why a matrix product is not a library call."""


# The heroes of a kernel by name, and why an emitter made for one of its operations does not take it.

_MOST_JOINED = 4


def heroes_of(kernel: GpuKernel) -> Instructions:
    """The hero of each output (`FindNonTrivialHero`); XLA names its kernels by their opcodes."""
    found = []
    for output, root in zip(outputs_of(kernel.instruction), kernel.summary.roots, strict=False):
        hero, is_root = root.hero
        found.append(output if is_root or hero is None else _toward_hero(kernel, output, hero))
    return found


def hero_names(kernel: GpuKernel) -> str:
    """`reduce.5 f32[1024]`; of several outputs the first that is not an output itself."""
    heroes = heroes_of(kernel)
    roots = outputs_of(kernel.instruction)
    first = next((h for h, r in zip(heroes, roots, strict=True) if h is not r), heroes[0])
    more = f" and {len(heroes) - 1} more" if len(heroes) > 1 else ""
    return f"{first.name} {first.shape.text_without_layout}{more}"


def why_a_loop(kernel: GpuKernel) -> str:
    """Why the emitter that its operations suggest does not take it; empty where none suggests itself."""
    kernel_model = kernel.analysis
    if not kernel.modern and min(kernel_model.input_bits, kernel_model.output_bits) < 8:
        return "elements are narrower than a byte"
    first = first_reduction(kernel_model)
    if first is not None and common_reduction(kernel_model) is None:
        return f"not all outputs have the {first.operands[0].elements:,} elements that the reduction reads"
    transposes = sum(len(root.transposes) for root in kernel_model.roots)
    if transposes > 1:
        return "it contains different transposes"
    if transposes:
        return "operations after the transpose move its elements"
    for hero, _ in kernel_model.heroes:
        because = "" if hero is None else _why_not(hero, len(kernel_model.roots) > 1)
        if because:
            return because
    if any(root.update is not None for root in kernel_model.roots) and not kernel_model.updates_in_place:
        return "the kernel reads the updated array elsewhere, or has other outputs"
    return ""


def _why_not(hero: Atom, several: bool) -> str:
    if hero.opcode == "reduce":
        return "the reduction is too short to split among threads"
    if hero.opcode == "transpose":
        return (
            "the transpose is not tiled: its sides are too short, or the last dimension is long and unchanged"
        )
    if hero.opcode == "concatenate":
        if several:
            return "the concatenate emitter supports one output only"
        return (
            f"it concatenates {len(hero.operands)} operands; the concatenate emitter supports {_MOST_JOINED}"
        )
    return ""


def _toward_hero(kernel: GpuKernel, output: Instruction, hero: Atom) -> Instruction:
    queue, seen = [output], {output}
    for node in queue:
        if kernel.model.atoms.atom(node) is hero:
            return node
        for operand in node.operands:
            if operand not in seen:
                seen.add(operand)
                queue.append(operand)
    return output


@runner("EM020", "A contiguous slice is a memcpy", runs="memcpy")
def slice_copy(kernel: GpuKernel) -> Answer:
    slice_ = copied_slice(kernel.instruction) if kernel.modern and kernel.is_generated else None
    return None if slice_ is None else {"slice": slice_.name, "bytes": slice_.byte_size}


@runner("EM021", "A slice at a loop's counter is a memcpy", runs="memcpy")
def dynamic_slice_copy(kernel: GpuKernel) -> Answer:
    slice_ = copied_dynamic_slice(kernel.instruction) if kernel.modern and kernel.is_generated else None
    if slice_ is None:
        return None
    moved = slice_ if slice_.opcode == "dynamic-slice" else slice_.second
    return {"moves": f"{slice_.opcode} {slice_.name}", "bytes": moved.byte_size}


@runner("EM022", "A fusion of copies is one memcpy each", runs="memcpy")
def copy_fusion(kernel: GpuKernel) -> Answer:
    if not kernel.instruction.is_fusion or kernel.instruction.fusion_kind == "kCustom":
        return None
    if not (copies := plain_copies(kernel.instruction)):
        return None
    return {"copies": copies, "bytes": sum(r.byte_size for r in outputs_of(kernel.instruction))}


# Fusions whose backend config names who runs them: made before the fusion passes, or by Triton's check.
@runner("EM030", "A fusion around a library call or a kernel of XLA's library", runs="custom fusion")
def custom(kernel: GpuKernel) -> bool:
    return kernel.config_kind == config.CUSTOM


@runner("EM031", "A matmul in Triton", runs="Triton GEMM")
def triton_gemm(kernel: GpuKernel) -> Answer:
    if kernel.config_kind not in ("__triton_gemm", "__triton_nested_gemm_fusion"):
        return None
    found = Json()
    if (dot := next((i for i in inside(kernel.instruction) if i.is_dot), None)) is not None:
        found["product"] = " × ".join(o.shape.text_without_layout for o in dot.operands[:2])
    return {**found, **_tile(kernel)}


@runner("EM032", "A normalization in Triton", runs="Triton block-level")
def triton(kernel: GpuKernel) -> Answer:
    return _tile(kernel) if kernel.config_kind == config.TRITON else None


@runner("EM033", "A cuDNN graph fusion", runs="cuDNN graph")
def cudnn(kernel: GpuKernel) -> bool:
    return kernel.config_kind == config.CUDNN


@runner("EM034", "A collective in Triton", runs="Triton (collective)")
def triton_collective(kernel: GpuKernel) -> bool:
    return kernel.config_kind == "__triton_collective"


def _tile(kernel: GpuKernel) -> Figures:
    found = kernel.summary.config
    if found is None or not found.tile_sizes:
        return {}
    return {"tile": "×".join(map(str, found.tile_sizes[0])), "warps": found.num_warps}


# Fusions for which XLA generates code: by their roots and the heroes of these.
@runner("EM040", "The reduction emitter", runs="reduction emitter")
def reduction(kernel: GpuKernel) -> Answer:
    if kernel.launch.kind != "reduction":
        return None
    first = first_reduction(kernel.analysis)
    assert first is not None
    assert first.reduction is not None
    is_row, (outer, middle, minor) = first.reduction
    lines, length, word = (middle, outer * minor, "row") if is_row else (outer * minor, middle, "column")
    reduces = f"{lines:,} {word}{'s' if lines != 1 else ''} of {length:,}"
    return {"hero": hero_names(kernel), "reduces": reduces}


@runner("EM041", "The transpose emitter", runs="transpose emitter")
def transpose(kernel: GpuKernel) -> Answer:
    if kernel.launch.kind != "transpose":
        return None
    heroes = [hero for hero, _ in kernel.analysis.heroes]
    tiled = next(h.transpose for h in heroes if h is not None and h.transpose is not None)
    sizes = "×".join(map(str, tiled.dimensions))
    order = ",".join(map(str, tiled.permutation))
    return {"hero": hero_names(kernel), "permutes": f"to {sizes} by {order}"}


@runner("EM042", "The scatter emitter", runs="scatter emitter")
def scatter(kernel: GpuKernel) -> Answer:
    if kernel.launch.kind != "scatter":
        return None
    root = outputs_of(kernel.instruction)[0]
    flags = [name for name in ("indices_are_sorted", "unique_indices") if root.raw(name) == "true"]
    return {"hero": hero_names(kernel), "updates": _shape(root.operands[-1])} | (
        {"given": " and ".join(flags).replace("_", " ")} if flags else {}
    )


@runner("EM043", "The sort emitter", runs="bitonic sort")
def sort(kernel: GpuKernel) -> Answer:
    return {"hero": hero_names(kernel)} if kernel.launch.kind == "sort" else None


@runner("EM044", "The concatenate emitter", runs="concatenate emitter")
def concatenate(kernel: GpuKernel) -> Answer:
    if kernel.launch.kind != "concatenate":
        return None
    hero = kernel.analysis.heroes[0][0]
    assert hero is not None
    dimension = (hero.attributes[0] or "{0}").strip("{}")
    return {"hero": hero_names(kernel), "joins": f"{len(hero.operands)} along dimension {dimension}"}


@runner("EM045", "In-place update", runs="in-place update")
def in_place_update(kernel: GpuKernel) -> Answer:
    first = kernel.analysis.roots[0].update
    if kernel.launch.kind != "loop" or first is None or not kernel.analysis.updates_in_place:
        return None
    return {"update": first.shape.text_without_layout, "of": _shape(outputs_of(kernel.instruction)[0])}


@runner("EM046", "The slices emitter", runs="slices emitter")
def slices(kernel: GpuKernel) -> Answer:
    return {"slices": len(kernel.summary.roots)} if kernel.launch.kind == "slices" else None


@runner("EM049", "The loop emitter", runs="loop emitter")
def loop(kernel: GpuKernel) -> Answer:
    roots = outputs_of(kernel.instruction)
    more = f" and {len(roots) - 1} more" if len(roots) > 1 else ""
    found = {"result": f"{roots[0].name} {_shape(roots[0])}{more}"}
    because = why_a_loop(kernel)
    return found | {"because": because} if because else found


def _shape(instruction: Instruction) -> str:
    return instruction.shape.text_without_layout


RULES = (
    slice_copy,
    dynamic_slice_copy,
    copy_fusion,
    custom,
    triton_gemm,
    triton,
    cudnn,
    triton_collective,
    unsettled,
    reduction,
    transpose,
    scatter,
    sort,
    concatenate,
    in_place_update,
    slices,
    loop,
)
