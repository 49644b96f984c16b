"""All recipes."""

from hlofuse.reports.advice.batching import BATCHED
from hlofuse.reports.advice.carried import CARRIED, EARLY
from hlofuse.reports.advice.indexing import INDEXING, LAYOUT, PRODUCTS
from hlofuse.reports.advice.loops import LOOPS
from hlofuse.reports.advice.recipe import Recipe
from hlofuse.reports.advice.reductions import REDUCTIONS, SHARING
from hlofuse.reports.advice.restated import RESTATED
from hlofuse.reports.advice.updates import COLLECTIVES, UPDATES

RECIPES: tuple[Recipe, ...] = (
    *REDUCTIONS,
    *PRODUCTS,
    *SHARING,
    *LAYOUT,
    *LOOPS,
    *UPDATES,
    *INDEXING,
    *COLLECTIVES,
    *CARRIED,
)

WRITTEN = {**RESTATED, **BATCHED, **EARLY}
"""The recipes that are changes of a module before optimizations, by name."""
