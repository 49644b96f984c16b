"""All recipes."""

from .batching import BATCHED
from .carried import CARRIED, EARLY
from .chunks import CHUNKS, IN_PARTS
from .indexing import INDEXING, LAYOUT, PRODUCTS, ROUNDED
from .loops import LOOPS
from .products import RESTATED
from .recipe import Recipe
from .reductions import REDUCTIONS, SHARING
from .rows import ROWS
from .updates import COLLECTIVES, UPDATES
from .windows import WINDOWS

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
    *IN_PARTS,
    *ROUNDED,
)
WRITTEN = {**RESTATED, **ROWS, **WINDOWS, **BATCHED, **EARLY, **CHUNKS}
"""The recipes that are changes of a module before optimizations, by name."""
