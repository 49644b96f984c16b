"""Recipes about matrix products and what stands before and after them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod

from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.common import make
from hlofuse.reports.advice.pattern import (
    Pattern,
    fusion_of,
    is_triton_product,
    parsed,
    places,
    reader,
    value_of,
)
from hlofuse.reports.advice.recipe import Finding, Recipe
from hlofuse.reports.advice.situation import Situation

_EIGHT_BITS = ("s8", "u8", "f8")
_HALF = ("bf16", "f16")


def _has_several_readers(x: Instruction) -> bool:
    """True for a product whose elements several operations read, all of them element by element."""
    readers = [u for u in x.users if u.shape == x.shape and u.opcode != "fusion"]
    return is_triton_product(x) and len(readers) == len(x.users) > 1


def _is_returned_beside_its_reader(x: Instruction) -> bool:
    results = [u for u in x.users if u.opcode == "tuple" and not u.users]
    return is_triton_product(x) and bool(results) and len(x.users) == 2


def _with_operand(
    text: str, condition: Callable[[Instruction], bool] = lambda x: True, backends: str = "gpu, cpu"
) -> Callable[[Situation], Iterable[Finding]]:
    """Finds products that read something of this pattern from memory."""
    pattern = parsed(text)

    def has_it(x: Instruction) -> bool:
        return any(pattern.matches(o) and condition(o) for o in map(value_of, x.operands))

    return places("product", has_it, backends=backends)


def _source_type(x: Instruction) -> str:
    """The type from which an operand is widened, scaled or not; empty if it is not."""
    x = value_of(x)
    if x.opcode == "convert":
        return _source_type(x.operands[0]) or x.operands[0].shape.element_type
    types = [_source_type(o) for o in x.operands] if x.opcode == "multiply" else []
    return next(filter(None, types), "")


def _widened(types: tuple[str, ...], to: tuple[str, ...]) -> Callable[[Situation], Iterator[Finding]]:
    """Finds products whose operands are both widened from some types to others."""

    def find(s: Situation) -> Iterator[Finding]:
        for dot in s.module.instructions():
            if dot.opcode != "dot" or dot.operands[0].shape.element_type not in to:
                continue
            if all(_source_type(o).startswith(types) for o in dot.operands):
                yield Finding((fusion_of(dot) or dot).name)

    return find


def _sole_sum(x: Instruction) -> bool:
    """True for a matrix of which only the sums of rows are used."""
    user = next(iter(x.users)) if len(x.users) == 1 else x
    total = reader(user)
    return total.opcode == "reduce" and total.dimensions == (len(total.operands[0].shape.dimensions) - 1,)


def _is_times_a_vector(x: Instruction) -> bool:
    """True for a product of matrices that a vector is multiplied with."""
    users = [u for u in x.users if u.opcode == "dot"]
    of_dot = len(users) == len(x.users) == 1 and any(
        prod(o.shape.dimensions) == max(o.shape.dimensions) for o in users[0].operands
    )
    return of_dot or (x.opcode == "fusion" and _sole_sum(x) and _SCALED.matches(x.fused_root))


_SCALED = parsed("multiply(dot, broadcast)")
_SOFTMAX: Pattern = parsed("divide(exponential, broadcast(reduce))")


def _is_softmax(x: Instruction) -> bool:
    while x.opcode in ("bitcast", "convert"):
        x = x.operands[0]
    return _SOFTMAX.matches(x) or (x.opcode == "fusion" and x.fused_root.opcode == "divide")


def _is_attention(x: Instruction) -> bool:
    """True for the product of a softmax, in a type for which cuDNN has a kernel."""
    return x.shape.element_type in _HALF and any(_is_softmax(o) for o in x.operands)


def _is_wide_softmax_input(x: Instruction) -> bool:
    """True for a product of narrow operands with a wide result that goes into a softmax."""
    wide = x.shape.element_type == "f32" and all(o.shape.element_type in _HALF for o in x.operands)
    return wide and any(
        u.opcode == "fusion" and any(i.opcode == "reduce" for i in u.called_computations[0]) for u in x.users
    )


def _scaled_from(x: Instruction, types: tuple[str, ...]) -> bool:
    scaled = value_of(x.operands[0]) if x.opcode == "convert" else x
    return scaled.opcode == "multiply" and _source_type(scaled).startswith(types)


def _gather_first(module: Module, finding: Finding) -> bool:
    gather = module.find(finding.at)
    if gather is None or gather.operands[0].opcode != "convert":
        return False
    table = gather.operands[0].operands[0]
    narrow = gather.shape.with_element_type(table.shape.element_type)
    picked = make.copy_of(gather, (table, *gather.operands[1:]), narrow)
    gather.replace_all_uses_with(make.convert(gather, picked, gather.shape.element_type))
    return True


PRODUCTS = (
    Recipe(
        "return-only-what-is-used",
        "Do not return the product's own result with its activation",
        places("product", _is_returned_beside_its_reader, backends="gpu", rule="PF002"),
    ),
    Recipe(
        "activation-with-one-reader",
        "Choose an activation that reads the product once: ReLU, tanh",
        places("product", _has_several_readers, backends="gpu", rule="PF002"),
    ),
    Recipe(
        "one-product-of-concatenated",
        "Concatenate the operands and multiply once",
        places("add(product, product)"),
    ),
    Recipe(
        "scale-after-an-int8-product",
        "Multiply in int8 and scale the result",
        _widened(("s8", "u8"), (*_HALF, "f32")),
    ),
    Recipe("multiply-in-fp8", "Multiply in fp8 and scale the result", _widened(("f8",), (*_HALF, "f32"))),
    Recipe(
        "multiply-narrow-sum-wide",
        "Multiply in bfloat16 with preferred_element_type=jnp.float32",
        _widened(_HALF, ("f32",)),
    ),
    Recipe(
        "scale-after-the-product",
        "Scale the product, not the quantized weights",
        _with_operand("convert|multiply", lambda o: _scaled_from(o, _EIGHT_BITS)),
    ),
    Recipe(
        "mask-after-the-product",
        "Mask the rows of the product, not those of its operand",
        _with_operand("select(broadcast, _, broadcast(constant))", backends="gpu"),
    ),
    Recipe(
        "scale-instead-of-a-diagonal",
        "Multiply by the vector, not by a diagonal matrix",
        _with_operand("select(compare(iota|broadcast, iota|broadcast), broadcast)"),
    ),
    Recipe(
        "vector-first",
        "Multiply with the vector first: x @ (w @ v)",
        places("product", _is_times_a_vector),
    ),
    Recipe(
        "sum-before-the-product",
        "Sum the product's operand over that axis, then multiply",
        places("product", lambda x: _sole_sum(x) and not _is_times_a_vector(x)),
    ),
    Recipe(
        "trace-without-the-product",
        "Sum x * w.T instead of taking the trace of a product",
        places("select(compare(iota, iota), product|reduce)"),
    ),
    Recipe(
        "heads-before-the-sequence",
        "Keep the heads before the sequence: no transposes around products",
        _with_operand("transpose", lambda o: len(o.shape.dimensions) > 3, backends="gpu"),
    ),
    Recipe(
        "attention-by-cudnn",
        "Call jax.nn.dot_product_attention with implementation='cudnn'",
        places("product", _is_attention, backends="gpu"),
    ),
    Recipe(
        "softmax-of-bfloat16-scores",
        "Leave the scores in bfloat16 and cast them in the softmax",
        places("product", _is_wide_softmax_input, backends="gpu"),
    ),
    Recipe(
        "distances-by-a-product",
        "Compute squared distances as |a|² + |b|² − 2 a·b",
        places("reduce(multiply(subtract(broadcast, broadcast), subtract))"),
    ),
    Recipe(
        "cast-what-is-gathered",
        "Cast the gathered rows, not the table",
        places("gather(convert)", backends="gpu"),
        _gather_first,
    ),
)
