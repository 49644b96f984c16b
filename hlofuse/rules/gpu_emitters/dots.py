"""What became of a matrix product of the program that is not a library call."""

from typing import Any

from hlofuse.analysis.cpu_predicates import product_as_reduce
from hlofuse.cost.gpu.atoms import Atom
from hlofuse.cost.gpu.launch import first_reduction, reductions_agree
from hlofuse.ir.graph import Instruction
from hlofuse.rules.gpu_emitters.candidate import GpuKernel
from hlofuse.rules.gpu_fusible import outputs_of
from hlofuse.rules.verdict import runner


@runner("EM060", "A matrix-vector product becomes multiply and reduce", runs="multiply and reduce")
def strength_reduced(kernel: GpuKernel) -> dict[str, Any] | None:
    return product_as_reduce(kernel.instruction)


@runner("EM061", "A dot that no library supports is a loop", runs="loop emitter")
def not_a_library_call(kernel: GpuKernel) -> dict[str, Any] | None:
    if not kernel.is_generated or kernel.config_kind:
        return None
    dot = next((i for i in _inside(kernel.instruction) if i.opcode == "dot"), None)
    if dot is None:
        return None
    factors = " × ".join(o.shape.text_without_layout for o in dot.operands[:2])
    return {"product": f"{factors} → {dot.shape.text_without_layout}"}


def _inside(instruction: Instruction) -> list[Instruction]:
    if instruction.opcode != "fusion":
        return [instruction]
    return list(instruction.fused_computation)


RULES = (strength_reduced, not_a_library_call)


# The heroes of a kernel by name, and why an emitter made for one of its operations does not take it.

_MOST_JOINED = 4


def heroes_of(kernel: GpuKernel) -> list[Instruction]:
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
    kernel_model = kernel.model.kernel(kernel.instruction)
    if not kernel.modern and min(kernel_model.input_bits, kernel_model.output_bits) < 8:
        return "elements are narrower than a byte"
    first = first_reduction(kernel_model)
    if first is not None and not reductions_agree(kernel_model, first):
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
    """The operation above an output that is like the hero."""
    queue, seen = [output], {output}
    for node in queue:
        if kernel.model.atoms.atom(node) is hero:
            return node
        for operand in node.operands:
            if operand not in seen:
                seen.add(operand)
                queue.append(operand)
    return output
