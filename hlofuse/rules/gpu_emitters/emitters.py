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


@runner("EM040", "The reduction emitter", runs="reduction emitter")
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


@runner("EM041", "The transpose emitter", runs="transpose emitter")
def transpose(kernel: GpuKernel) -> dict[str, Any] | None:
    if kernel.launch.kind != "transpose":
        return None
    heroes = [hero for hero, _ in kernel.model.kernel(kernel.instruction).heroes]
    tiled = next(h.transpose for h in heroes if h is not None and h.transpose is not None)
    sizes = "×".join(map(str, tiled.dimensions))
    order = ",".join(map(str, tiled.permutation))
    return {"hero": hero_names(kernel), "permutes": f"to {sizes} by {order}"}


@runner("EM042", "The scatter emitter", runs="scatter emitter")
def scatter(kernel: GpuKernel) -> dict[str, Any] | None:
    if kernel.launch.kind != "scatter":
        return None
    root = outputs_of(kernel.instruction)[0]
    flags = [name for name in ("indices_are_sorted", "unique_indices") if root.attributes.raw(name) == "true"]
    return {"hero": hero_names(kernel), "updates": _shape(root.operands[-1])} | (
        {"given": " and ".join(flags).replace("_", " ")} if flags else {}
    )


@runner("EM043", "The sort emitter", runs="bitonic sort")
def sort(kernel: GpuKernel) -> dict[str, Any] | None:
    return {"hero": hero_names(kernel)} if kernel.launch.kind == "sort" else None


@runner("EM044", "The concatenate emitter", runs="concatenate emitter")
def concatenate(kernel: GpuKernel) -> dict[str, Any] | None:
    if kernel.launch.kind != "concatenate":
        return None
    hero = kernel.model.kernel(kernel.instruction).heroes[0][0]
    assert hero is not None
    return {"hero": hero_names(kernel), "joins": _joined(hero)}


@runner("EM045", "The update in place", runs="in-place update")
def in_place_update(kernel: GpuKernel) -> dict[str, Any] | None:
    first = kernel.model.kernel(kernel.instruction).roots[0].update
    if (
        kernel.launch.kind != "loop"
        or first is None
        or not kernel.model.kernel(kernel.instruction).updates_in_place
    ):
        return None
    return {"update": first.shape.text_without_layout, "of": _shape(outputs_of(kernel.instruction)[0])}


@runner("EM046", "The emitter of slices", runs="slices emitter")
def slices(kernel: GpuKernel) -> dict[str, Any] | None:
    return {"slices": len(kernel.summary.roots)} if kernel.launch.kind == "slices" else None


@runner("EM049", "The loop emitter", runs="loop emitter")
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
