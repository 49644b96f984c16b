"""All recipes."""

from __future__ import annotations

from hlofuse.reports.advice.layout import LAYOUT
from hlofuse.reports.advice.products import PRODUCTS
from hlofuse.reports.advice.recipe import Recipe
from hlofuse.reports.advice.reductions import REDUCTIONS
from hlofuse.reports.advice.sharing import SHARING

RECIPES: tuple[Recipe, ...] = (
    *REDUCTIONS,
    *PRODUCTS,
    *SHARING,
    *LAYOUT,
)
