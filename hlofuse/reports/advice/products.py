"""Recipes about matrix products and what stands before and after them."""

from collections.abc import Iterator
from math import prod

from hlofuse.analysis.elementwise import without_bitcasts
from hlofuse.cost.gpu.backend_config import is_tuned_product
from hlofuse.ir.graph import Instruction
from hlofuse.reports.advice.matching import Find, fusion_of, has, parsed, reader, value_of, where
from hlofuse.reports.advice.recipe import Finding, Recipe, Situation

_INTEGERS, _HALF, _WIDE = ("s8", "u8"), ("bf16", "f16"), ("bf16", "f16", "f32")


def _activations(s: Situation) -> Iterator[Finding]:
    """Products that several operations of one kernel read."""
    found: dict[str, None] = {}
    for r in s.refusals("PF002"):
        inside = set(s.inside(r.consumer))
        for x, _ in s.edges(r):
            if is_tuned_product(x) and 1 < len(x.users) == len(inside.intersection(x.users)):
                found[x.name] = None
    yield from (Finding(name, "PF002") for name in found)


@where("product", only="gpu", rule="PF002")
def _returned(x: Instruction) -> bool:
    """A product that is a result of the program, and that one other instruction reads."""
    results = [u for u in x.users if u.opcode == "tuple" and not u.users]
    return is_tuned_product(x) and bool(results) and len(x.users) == 2


def _source_type(x: Instruction) -> str:
    """The type from which an operand is widened, scaled or not; empty if it is not."""
    x = value_of(x)
    if x.opcode == "convert":
        return _source_type(x.operands[0]) or x.operands[0].shape.element_type
    types = [_source_type(o) for o in x.operands] if x.opcode == "multiply" else []
    return next(filter(None, types), "")


def _find_widened(types: tuple[str, ...], to: tuple[str, ...]) -> Find:
    """Finds products whose operands are both widened from some types to others."""

    def find(s: Situation) -> Iterator[Finding]:
        for dot in s.of("dot"):
            if dot.operands[0].shape.element_type not in to:
                continue
            if all(_source_type(o).startswith(types) for o in dot.operands):
                yield Finding((fusion_of(dot) or dot).name)

    return find


@where("product")
def _sole_sums(x: Instruction) -> bool:
    """A matrix of which only the sums of rows are used."""
    total = reader(next(iter(x.users)) if len(x.users) == 1 else x)
    return total.opcode == "reduce" and total.dimensions == (len(total.operands[0].shape.dimensions) - 1,)


_SOFTMAX = parsed("divide(exponential, broadcast(reduce))")


@where("product", only="gpu")
def _attention(x: Instruction) -> bool:
    """The product of a softmax, in a type for which cuDNN has a kernel."""
    is_narrow = x.shape.element_type in _HALF
    return is_narrow and any(_SOFTMAX.matches(_uncast(o)) for o in x.operands)


def _uncast(x: Instruction) -> Instruction:
    while x.opcode in ("bitcast", "convert"):
        x = x.operands[0]
    return x


@where("product", only="gpu")
def _wide_scores(x: Instruction) -> bool:
    """A product of narrow operands with a wide result that goes into a softmax."""
    wide = x.shape.element_type == "f32" and all(o.shape.element_type in _HALF for o in x.operands)
    return wide and any(u.opcode == "fusion" and has(u.called_computations[0], "reduce") for u in x.users)


@where("add(product, product)")
def _added_products(x: Instruction) -> bool:
    """Two products that a kernel of its own adds: since 0.12 XLA adds one within the other."""
    return fusion_of(x) is None


@where("reduce(multiply(subtract(broadcast, broadcast), subtract))")
def _distances(x: Instruction) -> bool:
    """Sums that matrix units pay for."""
    return prod(x.operands[0].shape.dimensions[d] for d in x.dimensions) >= 16


@where("product", only="gpu")
def _scaled_weights(x: Instruction) -> bool:
    """A product with weights that a kernel of their own widens and scales."""
    scaled = [_uncast(o) for o in x.operands]
    return any(o.opcode == "multiply" and _source_type(o).startswith(("s8", "u8", "f8")) for o in scaled)


@where("product", only="gpu")
def _transposed_heads(x: Instruction) -> bool:
    operands = map(without_bitcasts, x.operands)
    return any(o.opcode == "transpose" and len(o.shape.dimensions) > 3 for o in operands)


PRODUCTS = (
    Recipe("return-only-what-is-used", "Do not return the product and its activation", _returned),
    Recipe("activation-with-one-reader", "Choose an activation that reads once: ReLU, tanh", _activations),
    Recipe("one-product-of-concatenated", "Concatenate, multiply once", _added_products),
    Recipe("scale-after-an-int8-product", "Multiply int8, scale the result", _find_widened(_INTEGERS, _WIDE)),
    Recipe("multiply-narrow-sum-wide", "Multiply bfloat16, sum in float32", _find_widened(_HALF, ("f32",))),
    Recipe("scale-after-the-product", "Scale the product, not the quantized weights", _scaled_weights),
    Recipe("sum-before-the-product", "Sum the operand first, then multiply", _sole_sums),
    Recipe("heads-before-the-sequence", "Keep the heads before the sequence", _transposed_heads),
    Recipe("attention-by-cudnn", "Call jax.nn.dot_product_attention with cudnn", _attention),
    Recipe("softmax-of-bfloat16-scores", "Leave scores in bfloat16 up to the softmax", _wide_scores),
    Recipe("distances-by-a-product", "Compute distances as |a|² + |b|² − 2 a·b", _distances),
)
