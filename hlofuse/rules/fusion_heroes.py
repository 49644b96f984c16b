"""Rules about the loops of two kernels, which have to be the same ones."""

from typing import NamedTuple

from hlofuse.cost.gpu.atoms import Atom
from hlofuse.cost.gpu.heroes import is_real_reduction
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.shapes import is_reshape_or_transpose_bitcast
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.releases import Release
from .catalogue import Rule, essential, register
from .settings import Settings
from .verdict import Decision, Figures, Verdict

REDUCTIONS_DIFFER = essential(
    "GM011", "The two reductions differ", message="tiled reductions with different shapes"
)
TRANSPOSES_DIFFER = essential(
    "GM012", "The two transposes differ", message="tiled transposes with different shapes"
)
BECOMES_UNTILED = register(
    "GM018",
    "A tiled transpose would be too deep in the kernel",
    message="tiled transpose would become untiled",
)
PLAIN_TRANSPOSE = register(
    "GM013",
    "An untiled transpose next to a tiled kernel",
    message="multi-output fusion of a nested transpose with an unnested hero op",
)
TRANSPOSE_AND_REDUCTION = essential(
    "GM014", "One transposes, the other reduces", message="multi-output fusion of a transpose and a reduction"
)
LOOPS_DIFFER = essential("GM015", "The two loop over different shapes", message="different loop shapes")


class _Hero(NamedTuple):
    atom: Atom | None
    shape: Shape


def _hero(instruction: Instruction, model: KernelModel) -> _Hero:
    """`GetRealHeroForMultiOutputFusion`."""
    summary = model.summary(instruction)
    if not summary.is_fusion:
        return _Hero(summary.atom, instruction.shape)
    for root in summary.roots:
        hero, own = root.hero
        if hero is not None and (hero.transpose is not None or is_real_reduction(hero, own)):
            return _Hero(hero, hero.shape)
    first = summary.roots[0]
    return _Hero(first.atom, first.result.shape)


def hero_input_shape(instruction: Instruction, model: KernelModel) -> Shape:
    """The shape of what the kernel's hero reads; an empty one if it reads nothing."""
    atom = _hero(instruction, model).atom
    return atom.operands[0].shape if atom is not None and atom.operands else Shape("")


def _loop_shape(hero: _Hero) -> Shape:
    atom = hero.atom
    if atom is not None and (atom.reduction is not None or atom.transpose is not None):
        return atom.operands[0].shape
    return hero.shape


def heroes_differ(a: Atom | None, b: Atom | None, release: Release) -> tuple[Rule, Figures] | None:
    """`FusionHeroesAreCompatible`."""
    if a is None or b is None:
        return None
    if a.reduction is not None and b.reduction is not None and a.reduction != b.reduction:
        return REDUCTIONS_DIFFER, {"sizes": list(a.reduction.sizes), "other_sizes": list(b.reduction.sizes)}
    s, t = a.transpose, b.transpose
    if s is not None and t is not None and not s.is_equivalent(t):
        return TRANSPOSES_DIFFER, {"dimensions": list(s.dimensions), "other_dimensions": list(t.dimensions)}
    tiled_a, tiled_b = s is not None or a.reduction is not None, t is not None or b.reduction is not None
    plain_a = a.opcode == "transpose" and s is None
    plain_b = b.opcode == "transpose" and t is None
    if release.plain_transposes_apart and ((tiled_a and plain_b) or (plain_a and tiled_b)):
        return PLAIN_TRANSPOSE, {}
    if (s is not None and b.reduction is not None) or (a.reduction is not None and t is not None):
        return TRANSPOSE_AND_REDUCTION, {}
    return None


def heroes_verdict(
    first: Instruction, second: Instruction, model: KernelModel, settings: Settings
) -> Decision:
    release = model.release
    a, b = _hero(first, model).atom, _hero(second, model).atom
    found = heroes_differ(a, b, release)
    if found is not None and settings.enables(found[0]):
        has_old_message = found[0] is TRANSPOSE_AND_REDUCTION and not release.plain_transposes_apart
        return Verdict(*found, "MOF-fusion of a transpose and a reduction" if has_old_message else None)
    if not release.mlir_emitters and settings.enables(BECOMES_UNTILED):
        tiled = ((first, second, a), (second, first, b))
        for fusion, reader, hero in tiled:
            reads = fusion.opcode == reader.opcode == "fusion" and fusion in reader.operands
            if reads and hero is not None and hero.transpose is not None:
                return None if _at_the_end(fusion, reader, model) else Verdict(BECOMES_UNTILED)
    return None


def _at_the_end(fusion: Instruction, reader: Instruction, model: KernelModel) -> bool:
    """Between the fusion and the reader's root there is a chain of element-wise operations only."""
    users = reader.parameter_of(fusion).users
    if len(users) != 1:
        return False
    while users[0].users:
        if not model.atoms.atom(users[0]).intermediate_chain:
            return False
        users = users[0].users
    return True


def shapes_differ(
    first: Instruction, second: Instruction, model: KernelModel, settings: Settings
) -> Decision:
    """`ShapesCompatibleForMultiOutputFusion`."""
    found = heroes_verdict(first, second, model, settings)
    if found is not None:
        return found
    a, b = _hero(first, model), _hero(second, model)
    x, y = _loop_shape(a), _loop_shape(b)
    if x is y or x.key_ignoring_element_type == y.key_ignoring_element_type:
        return None
    if not x.is_tuple and not y.is_tuple and is_reshape_or_transpose_bitcast(x, y):
        return None
    return Verdict(LOOPS_DIFFER, {"shape": str(x), "other_shape": str(y)})
