"""How XLA:CPU computes a dot that no library fusion took (`xla/service/cpu/dot_op_emitter.cc`)."""

from __future__ import annotations

from typing import Any

from hlofuse.ir.graph import Instruction

EIGEN, VECTOR, NAIVE = "Eigen", "matrix-vector loop", "plain loops"
_EIGEN_TYPES = frozenset({"f16", "f32", "f64", "c64", "c128", "s32"})
_SMALL = 3


def dot_strategy(dot: Instruction) -> tuple[str, str]:
    """One of EIGEN, VECTOR, NAIVE, and what decided (`GetDotImplementationStrategy`).

    A batched product is judged by one of its matrices. Eigen runs on several threads unless
    `--xla_cpu_multi_thread_eigen=false`, which gives small products to loops of XLA's own.
    """
    batch = len(_numbers(dot, "lhs_batch_dims"))
    left, right = (o.shape.dimensions[batch:] for o in dot.operands[:2])
    result = dot.shape.dimensions[batch:]
    is_number = not dot.shape.element_type.startswith("c") and dot.shape.element_type != "pred"
    if is_number and (len(result) <= 1 or (len(result) == 2 and 1 in result)):
        return VECTOR, f"the result of one product is {_sizes(result)}"
    if is_number and _is_small(left) and _is_small(right):
        return NAIVE, f"{_sizes(left)} and {_sizes(right)} each have a side of at most {_SMALL}"
    matrices = len(left) == len(right) == len(result) == 2
    has_elements = all(o.shape.element_count for o in dot.operands[:2])
    if matrices and dot.shape.element_type in _EIGEN_TYPES and has_elements:
        return EIGEN, f"{_sizes(left)} times {_sizes(right)}, {dot.shape.element_type}"
    if not matrices:
        return NAIVE, f"{_sizes(left)} times {_sizes(right)} is no product of two matrices"
    return NAIVE, f"Eigen has no product of {dot.shape.element_type}"


def _numbers(dot: Instruction, name: str) -> list[int]:
    text = (dot.attributes.raw(name) or "").strip("{}")
    return [int(n) for n in text.split(",") if n.strip()]


def _is_small(sizes: tuple[int, ...]) -> bool:
    return len(sizes) <= 1 or (len(sizes) == 2 and min(sizes) <= _SMALL)


def _sizes(sizes: tuple[int, ...]) -> str:
    return "×".join(map(str, sizes)) or "a scalar"


# ------------------------------------------------------------ reduced dots
#
# Products that became a multiply and a reduce before fusion, told by what their metadata still says.

_PRODUCTS = ("dot_general", "dot")


def product_as_reduce(kernel: Instruction) -> dict[str, Any] | None:
    """The reduce that was a dot in the program, if the kernel has one and no dot."""
    inside = list(kernel.fused_computation) if kernel.opcode == "fusion" else [kernel]
    if any(i.opcode == "dot" for i in inside):
        return None
    born = [i for i in inside if (i.op_name or "").rpartition("/")[2] in _PRODUCTS]
    created = next((i for i in born if i.opcode == "reduce"), None)
    if created is None or not any(i.opcode == "multiply" for i in born):
        return None
    return {"product": created.name}
