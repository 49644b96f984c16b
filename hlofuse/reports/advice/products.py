"""Recipes about matrix products and what stands before and after them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hlofuse.ir.graph import Instruction
from hlofuse.reports.advice.recipe import Finding, Recipe
from hlofuse.reports.advice.situation import Situation


def _triton_products(s: Situation) -> Iterator[Instruction]:
    """The products that Triton computes, whose kernel could take in what follows."""
    for i in s.module.instructions():
        if i.opcode == "fusion" and "triton_gemm" in (i.attributes.raw("backend_config") or ""):
            yield i


def _is_result(x: Instruction) -> bool:
    """True for the tuple of the program's results."""
    return x.opcode == "tuple" and not x.users


def _returned_products(s: Situation) -> Iterable[Finding]:
    """A product that is a result, and that one other instruction reads."""
    for product in _triton_products(s):
        results = [u for u in product.users if _is_result(u)]
        if results and len(product.users) == 2:
            yield Finding(product.name, "PF002")


PRODUCTS = (
    Recipe(
        "return-only-what-is-used",
        "Do not return the product's own result beside its activation",
        _returned_products,
    ),
)
