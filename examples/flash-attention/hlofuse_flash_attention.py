"""Attention as one flash-attention kernel: rules for `hlofuse explain --rules flash-attention`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlofuse.plugins import CustomFusion, Kernel, KernelCost, Match

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription

# A name that is defined more than once may be any of its definitions: with or without a mask, a matrix
# product that XLA left a dot or made a library call, a division by the sum or a multiplication with its
# inverse. The order of definitions is that in which they are tried.
ATTENTION = """
q = T[...,S,D] parameter(0)
k = parameter(1)
v = parameter(2)
mask = pred[...] parameter(3)

// The product of queries and keys, for each head.
scores = T[...,S,K] dot(q, k)
scores = T[...,S,K] get-tuple-element(scores_call), index=0
scores_call = custom-call(q, k), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"alpha_real":1,"beta":0,"epilogue":"DEFAULT"}}
scores_call = custom-call(q, k), custom_call_target="__cublas$lt$matmul", backend_config={"gemm_backend_config":{"alpha_real":1,"beta":0,"epilogue":"DEFAULT"}}

scale = constant(?)
scales = broadcast(scale), dimensions={}
scaled = multiply(scores, scales)
scaled = scores

never = constant(?)
nevers = broadcast(never), dimensions={}
masked = select(causal, scaled, nevers)
masked = select(mask, scaled, nevers)
masked = scaled

// A causal mask needs not be read: the kernel knows where it is.
causal = pred[...,S,K] broadcast(lower)
lower = pred[S,K] compare(rows, columns), direction=GE
rows = iota(), iota_dimension=0
columns = iota(), iota_dimension=1

// Softmax over the last dimension.
lowest = constant(-inf)
max = reduce(masked, lowest), dimensions={-1}, to_apply=maximum
maxs = broadcast(max), dimensions={:-1}
shifted = subtract(masked, maxs)
exp = exponential(shifted)
zero = constant(0)
sum = reduce(exp, zero), dimensions={-1}, to_apply=add
sums = broadcast(sum), dimensions={:-1}
softmax = divide(exp, sums)
one = constant(1)
ones = broadcast(one), dimensions={}
inverse = divide(ones, sum)
inverses = broadcast(inverse), dimensions={:-1}
softmax = multiply(exp, inverses)

// Its product with the values.
ROOT out = T[...,S,E] dot(softmax, v)
out = T[...,S,E] get-tuple-element(out_call), index=0
out_call = custom-call(softmax, v), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"alpha_real":1,"beta":0,"epilogue":"DEFAULT"}}
out_call = custom-call(softmax, v), custom_call_target="__cublas$lt$matmul", backend_config={"gemm_backend_config":{"alpha_real":1,"beta":0,"epilogue":"DEFAULT"}}
"""  # noqa: E501

_QUERIES = 128
"""Queries a block takes at once: the keys and values are read once for each such group."""


def keeps_heads(match: Match) -> bool:
    """The kernel takes queries, keys and values of the same heads: nothing is broadcast between them."""
    q, k, v = (match.operands[name].shape for name in ("q", "k", "v"))
    s, d, keys, e = (int(match.sizes[name]) for name in ("S", "D", "K", "E"))
    heads = q.element_count // (s * d)
    return k.element_count == heads * keys * d and v.element_count == heads * keys * e


def cost(kernel: Kernel, device: DeviceDescription) -> KernelCost:
    """Both products on matrix units; scores never reach memory, keys and values are read once a group."""
    s, d, keys, e = (int(kernel.sizes[name]) for name in ("S", "D", "K", "E"))
    q, k, v = (kernel.operands[name] for name in ("q", "k", "v"))
    heads = q.element_count // (s * d)
    groups = -(-s // _QUERIES)
    mask = kernel.operands.get("mask")
    return KernelCost(
        flops=8 * heads * s * keys,  # of the softmax, exponentials counted as a few operations each
        matrix_flops=2 * heads * s * keys * (d + e),
        matrix_type=q.element_type,
        bytes_read=q.byte_size + groups * (k.byte_size + v.byte_size) + (mask.byte_size if mask else 0),
    )


RULES = (
    CustomFusion(
        code="FLASH001",
        title="Attention becomes one flash-attention kernel",
        condition="Are two matrix products, of each head, joined by a softmax whose result nobody else "
        "reads?",
        why="The scores of a head grow with the square of the sequence. A kernel that keeps a block of them"
        " in shared memory, with a running maximum and sum, never writes them to memory.",
        advice="Call such a kernel from the program (jax.nn.dot_product_attention with"
        ' implementation="cudnn", or Pallas). In training the backward pass reads the softmax: then it needs'
        " a backward kernel as well, and this rule leaves the attention alone.",
        kernel="flash_attention",
        patterns=(ATTENTION,),
        where=keeps_heads,
        cost=cost,
    ),
)
