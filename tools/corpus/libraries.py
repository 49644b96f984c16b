"""Programs of libraries: models, optimizers, samplers and solvers compiled as those who use them do.

Each entry of PROGRAMS is a function that imports its libraries and returns (function, abstract arguments),
to be compiled and never run. Where a library is not installed the program is left out, and an error says so.

The figures of docs/fidelity.md are of the versions in libraries.txt.
"""

from by_library import (
    control,
    equations,
    equinox,
    equinox_sequences,
    equinox_structures,
    haiku,
    inference,
    inference_sequences,
    inference_trees,
    keras,
    keras_series,
    learning,
    linen,
    linen_sequences,
    nnx,
    optax,
    physics,
    plain,
    plain_attention,
    plain_elements,
    plain_images,
    plain_language,
    plain_processes,
    plain_scenes,
    plain_sequences,
    plain_signals,
    text_and_speech,
)

PARTS = (
    keras,
    keras_series,
    linen,
    linen_sequences,
    nnx,
    equinox,
    equinox_sequences,
    equinox_structures,
    optax,
    equations,
    inference,
    inference_sequences,
    inference_trees,
    haiku,
    control,
    physics,
    plain,
    plain_images,
    plain_language,
    plain_processes,
    plain_scenes,
    plain_sequences,
    plain_attention,
    plain_elements,
    plain_signals,
    text_and_speech,
    learning,
)

PROGRAMS = {name: make for part in PARTS for name, make in part.PROGRAMS.items()}
