"""All recipes."""

from hlofuse.reports.advice.cpu import COLLECTIVES, CPU
from hlofuse.reports.advice.indexing import INDEXING, LAYOUT
from hlofuse.reports.advice.loops import LOOPS
from hlofuse.reports.advice.products import PRODUCTS
from hlofuse.reports.advice.recipe import Recipe
from hlofuse.reports.advice.reductions import REDUCTIONS
from hlofuse.reports.advice.sharing import SHARING
from hlofuse.reports.advice.updates import UPDATES

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
