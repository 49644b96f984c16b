"""Forms of instructions, such as a product with the square of a sum, and searches for them."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.ir import Instruction, Instructions, Predicate, copy_module, values
from hlofuse.passes.common.literals import scalar_of
from .recipe import Finding, Situation

SMALL_BYTES = 1 << 20  # A kernel that moves fewer takes less time than its launch
MIN_BYTES = 1 << 16  # The smallest array that a suggestion is made for
MIN_ELEMENTS = 1 << 16  # The same for arrays that are counted in elements
_FREE = values("bitcast reshape copy transpose broadcast convert")
_T = TypeVar("_T")
_COMMUTATIVE = values("add multiply maximum minimum and or")


def value_of(x: Instruction) -> Instruction:
    """The instruction that computes a value, below bitcasts and the borders of library fusions."""
    while True:
        if x.is_bitcast:
            x = x.operand
        elif x.is_fusion and x.fused_root.opcode != "tuple":
            x = x.fused_root
        elif x.is_parameter and (fusion := x.fusion_around) is not None:
            x = fusion.operands[x.parameter_number]
        else:
            return x


def both_orders(pair: Sequence[_T]) -> tuple[Sequence[_T], Sequence[_T]]:
    return pair, pair[::-1]


def is_product(x: Instruction) -> bool:
    """True for a matrix product, whoever computes it."""
    if x.opcode == "custom-call":
        return "gemm" in (x.raw("custom_call_target") or "")
    return x.is_dot or (x.is_fusion and any(i.is_dot for i in x.fused_computation))


def _has_form(x: Instruction, form: tuple[Any, ...]) -> bool:
    """True for an opcode, `_` for any, and forms of its first operands, in any order where that is equal."""
    opcode, *parts = form
    x = value_of(x)
    orders = both_orders(x.operands) if x.opcode in _COMMUTATIVE else (x.operands,)
    return opcode in ("_", x.opcode) and any(
        len(operands) >= len(parts) and all(map(_has_form, operands, parts)) for operands in orders
    )


Find: TypeAlias = Callable[[Situation], Iterable[Finding]]


def where(*form: Any, only: str = "") -> Callable[..., Find]:
    """Makes of a condition a search for what has a form and fulfils it, `only` on one backend."""
    return lambda holds: each(lambda x: _has_form(x, form) and holds(x), form[0], backend=only, inside=True)


def is_column_reduction(x: Instruction) -> bool:
    """True if neighbours in memory are reduced into different results."""
    minor = x.operand.minor_to_major
    return x.is_reduce and bool(minor) and minor[0] not in x.dimensions


def same_twice(x: Instruction) -> bool:
    return value_of(x.operand) is value_of(x.second)


def each(
    where: Callable[[Instruction], object], *opcodes: str, backend: str = "", inside: bool = False
) -> Find:
    """Finds instructions for which `where` is true, with `inside` the library fusions that hold them, too."""

    def find(s: Situation) -> Iterator[Finding]:
        candidates = (s.of if inside else s.unfused)(*opcodes) if s.backend in (backend or s.backend) else ()
        return (Finding((x.fusion_around or x).name) for x in candidates if where(x))

    return find


def changed_by(change: Predicate, opcode: str) -> Find:
    """Finds the operations at which a change can be made, by making it in a copy."""

    def find(s: Situation) -> Iterator[Finding]:
        computations = copy_module(s.module).computations if s.of(opcode) else ()
        places = [x for c in computations for x in c.post_order() if x.opcode == opcode]
        return (Finding(x.name) for x in places if change(x))

    return find


def source(x: Instruction) -> Instruction:
    """The value below that `x` reshapes, copies, broadcasts or converts."""
    return x.through(*_FREE)


def readers(x: Instruction) -> Iterator[Instruction]:
    """The users, bitcasts passed over."""
    for user in x.users:
        yield from readers(user) if user.is_bitcast else (user,)


def only_reader(x: Instruction) -> Instruction | None:
    """The one user, bitcasts passed over."""
    found = list(readers(x))
    return found[0] if len(found) == 1 else None


def is_backward(x: Instruction) -> bool:
    """True for JAX's operation of a gradient, by its `op_name`; false for what it computes again there."""
    name = x.op_name or ""
    return "transpose(" in name and "rematted_computation" not in name


def origins(
    x: Instruction, limit: int = 60, through: Container[str] = _FREE | ELEMENTWISE_OPCODES | {"concatenate"}
) -> Instructions:
    """Values from which elementwise operations and changes of form compute `x`, nearest first."""
    found, seen = [x], {x}
    for i in found:
        if i.opcode in through:
            found += (fresh := [o for o in dict.fromkeys(i.operands) if o not in seen and len(seen) < limit])
            seen.update(fresh)
    return found


def has(instructions: Iterable[Instruction], *opcodes: str) -> bool:
    return any(i.opcode in opcodes for i in instructions)


def is_constant(x: Instruction, value: int | None = None) -> bool:
    """True for a scalar constant, broadcast or not."""
    constant = source(x)
    return constant.is_constant and (value is None or scalar_of(constant) == value)


def is_below_zero(x: Instruction) -> bool:
    """True for the test whether a number is negative."""
    return x.opcode == "compare" and x.raw("direction") == "LT" and is_constant(x.second, 0)


def sum_of(x: Instruction | None) -> Instruction | None:
    """The sum that `x` is, or that a library call takes first."""
    inside = x.fused_computation if x is not None and x.is_fusion else [x]
    sums = [i for i in inside if i is not None and i.is_reduce and combines_by(i, "add")]
    is_first = len(sums) == 1 and (sums[0] is x or sums[0].operand.is_parameter)
    return sums[0] if is_first else None


def is_total(x: Instruction) -> bool:
    """True for a sum of values and nothing else."""
    return x.is_reduce and combines_by(x, "add") and is_constant(x.second, 0)


def is_masked(x: Instruction) -> bool:
    """True for values of which a mask leaves some, and 0 for the others."""
    return x.opcode == "select" and is_constant(x.operands[2], 0)


def combines_by(x: Instruction, opcode: str) -> bool:
    """True for a reduction or scatter by this operation of the two values as they are."""
    root = x.to_apply.root if x.called_computations else x
    given = {o for o in root.operands if o.is_parameter}
    return root is not x and root.opcode == opcode and len(given) == root.operand_count
