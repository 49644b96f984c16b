"""Programs of libraries and of JAX alone that nothing of hlofuse was worked out on: a measure of unseen ones.

They are like those of libraries.py, and only counted. A program whose modules somebody looks into, to mend
something, belongs there from then on.
"""

from held import (
    actions,
    attention,
    decoding,
    few_bits,
    generation,
    grids,
    hidden,
    images,
    inverse,
    joint,
    keras_and_linen,
    learning,
    libraries,
    matter,
    media,
    numerics,
    offers,
    points,
    science,
    sequences,
    speech,
    stateful,
    tokens,
    tuning,
    vision,
)

PARTS = (
    keras_and_linen,
    libraries,
    stateful,
    sequences,
    decoding,
    images,
    science,
    attention,
    vision,
    learning,
    numerics,
    tokens,
    speech,
    few_bits,
    grids,
    matter,
    inverse,
    offers,
    hidden,
    points,
    actions,
    generation,
    joint,
    media,
    tuning,
)

PROGRAMS = {name: make for part in PARTS for name, make in part.PROGRAMS.items()}
