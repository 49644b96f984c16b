"""All recipes."""

from hlofuse.reports.advice.indexing import INDEXING, LAYOUT, PRODUCTS
from hlofuse.reports.advice.loops import LOOPS
from hlofuse.reports.advice.recipe import Recipe
from hlofuse.reports.advice.reductions import REDUCTIONS, SHARING
from hlofuse.reports.advice.updates import COLLECTIVES, CPU, UPDATES

RECIPES: tuple[Recipe, ...] = (
    *REDUCTIONS,
    *PRODUCTS,
    *SHARING,
    *LAYOUT,
    *LOOPS,
    *UPDATES,
    *INDEXING,
    *COLLECTIVES,
    *CPU,
)
