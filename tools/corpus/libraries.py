"""Programs of libraries: models, optimizers, samplers and solvers, compiled as their users compile them.

Each entry of PROGRAMS is a function that imports its libraries and returns (function, abstract arguments),
to be compiled and never run. A program whose library is not installed is left out, and an error says so.
"""

from by_library import equations, inference, keras, optax, physics

PARTS = (keras, optax, equations, inference, physics)

PROGRAMS = {name: make for part in PARTS for name, make in part.PROGRAMS.items()}
