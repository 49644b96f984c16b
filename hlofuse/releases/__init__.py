"""XLA releases as data: their names and differences."""

from .named import (
    ANY,
    AROUND_FUSION,
    EARLIEST,
    NAMED,
    NAMES,
    NEWEST,
    REFERENCE,
    Release,
    Span,
    behaviours,
    nearest,
    release_of,
)
