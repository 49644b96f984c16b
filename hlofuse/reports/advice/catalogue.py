"""All recipes."""

from __future__ import annotations

from hlofuse.reports.advice.products import PRODUCTS
from hlofuse.reports.advice.recipe import Recipe
from hlofuse.reports.advice.reductions import REDUCTIONS

RECIPES: tuple[Recipe, ...] = (
    *REDUCTIONS,
    *PRODUCTS,
)
