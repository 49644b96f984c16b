"""All recipes."""

from .batching import BATCHED
from .carried import CARRIED, EARLY
from .indexing import INDEXING, LAYOUT, PRODUCTS
from .loops import LOOPS
from .recipe import Recipe
from .reductions import REDUCTIONS, SHARING
from .restated import RESTATED
from .updates import COLLECTIVES, UPDATES

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
