"""Compiles and runs modules in the user's Python: the standard library, numpy and jax only.

Each line of standard input is a request in JSON, answered by a line on standard output.
"""

import json
import math
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

_ROUNDING, _CONTROL = 4, 10
"""Tolerances for equal programs: ulps of the largest value, and a factor on the control's change."""
_SHARP = 0.2
"""A tolerance above this share of the largest value decides nothing."""
_MOST_DRAWN = 1_000_003
"""Numbers drawn for an array; a larger one repeats them, out of step with its dimensions."""


class Worker:
    """Compiled programs and their results, by key."""

    def __init__(self) -> None:
        import jax
        import numpy
        from jax._src.lib import xla_client

        jax.config.update("jax_enable_x64", True)
        self.jax, self.np, self.xla, self.types = jax, numpy, xla_client, jax.numpy
        self.device = jax.devices("cpu")[0]
        with suppress(ImportError, AttributeError):
            __import__(
                "jaxlib.lapack"
            ).lapack._lapack.initialize()  # as JAX does where it lowers a call of it
        self.programs: dict[str, Any] = {}
        self.outputs: dict[Any, Any] = {}

    def compile(self, key: str, file: str, flags: dict[str, str]) -> dict[str, Any]:
        """Compile the HLO text in a file, with these debug options added to XLA_FLAGS."""
        xla, convert = self.xla, self.xla._xla.mlir
        proto = xla.hlo.hlo_module_from_text(Path(file).read_text("utf-8")).as_serialized_hlo_module_proto()
        program = convert.hlo_to_stablehlo(proto)
        options = xla.CompileOptions()
        for name, value in flags.items():
            typed = {"true": True, "false": False}.get(value, int(value) if value.isdecimal() else value)
            setattr(options.executable_build_options.debug_options, name, typed)
        # StableHLO returns nested tuples flat, and in the layout of what computes them.
        shape = xla.XlaComputation(proto).program_shape()
        result = shape.result_shape()
        layout = xla.Shape.tuple_shape(_leaves(result)) if result.is_tuple() else result
        options.executable_build_options.result_layout = layout
        self.programs.pop(key, None)
        inputs = [leaf for p in shape.parameter_shapes() for leaf in _leaves(p)]
        devices = xla.DeviceList((self.device,))
        found = self.device.client.compile_and_load(program, devices, options)
        self.programs[key] = found, inputs
        given = convert.mlir_module_to_xla_computation(program, False, False).get_hlo_module()
        head, arrow, rest = given.to_string().partition("->")
        first, line, rest = rest.partition("\n")  # its layouts are not those of the options
        leaves = iter(_leaves(result))
        first = re.sub(r"\w+\[[^]]*\](\{[^}]*\})?", lambda m: str(next(leaves, m[0])), first)
        given = head + arrow + first + line + rest
        return {"given": given, "text": found.hlo_modules()[0].to_string()}

    def run(self, key: str, scales: list[float], seed: int) -> dict[str, Any]:
        """Run a program on random inputs; `a` also with moved ones, another to be compared with it."""
        rows: list[Any] = []
        for place in ((n, sign) for n in range(len(scales)) for sign in (0, 1, -1)):
            random, scale = self.np.random.default_rng([seed, *map(abs, place)]), scales[place[0]]
            values = [self._input(random, s, scale, place[1]) for s in self.programs[key][1]]
            outputs = self._outputs(key, values)
            if key == "a":
                self.outputs[place] = (
                    outputs,
                    self._outputs(key, [self._step_floats(random, v) for v in values]),
                )
            else:
                each = enumerate(zip(*self.outputs[place], outputs, strict=True))
                rows += [(scale, place[1], n, *self._compare(*outputs)) for n, outputs in each]
        return {"rows": rows}

    def _outputs(self, key: str, values: list[Any]) -> list[Any]:
        arrays = [self.jax.device_put(v, self.device) for v in values]
        results = self.programs[key][0].execute_sharded(arrays).disassemble_into_single_device_arrays()
        return [self.np.asarray(r[0]) for r in results]

    def _input(self, random: Any, array: Any, scale: float, sign: int) -> Any:
        """Floats of size `scale`, small integers with a few negative ones, predicates by a coin."""
        np, kind, count = self.np, array.numpy_dtype(), min(math.prod(array.dimensions()), _MOST_DRAWN)
        if kind == np.bool_:
            values = random.random(count) < 0.5
        elif self.types.issubdtype(kind, np.integer):
            info = self.types.iinfo(kind)
            values = random.integers(max(-3, int(info.min)), min(17, int(info.max) + 1), count)
        else:
            values = random.standard_normal(count) * scale
            values = sign * (abs(values) + scale / 3) if sign else values
            values = values + 1j * values[::-1] if kind.kind == "c" else values
        return np.resize(values.astype(kind), array.dimensions())

    def _step_floats(self, random: Any, values: Any) -> Any:
        np = self.np
        if not self.types.issubdtype(values.dtype, np.inexact):
            return values
        plain = values.reshape(-1).view(values.real.dtype) if values.dtype.kind == "c" else values
        bits = plain.view(f"u{plain.dtype.itemsize}")
        up = random.integers(0, 2, bits.shape, dtype=np.uint8).astype(bits.dtype)
        changed = (bits + up + up - 1).view(plain.dtype)
        usable = (plain != 0) & np.isfinite(changed)
        return np.where(usable, changed, plain).view(values.dtype).reshape(values.shape)

    def _compare(self, a: Any, moved: Any, b: Any) -> tuple[float, float, float, str]:
        np = self.np
        if not self.types.issubdtype(a.dtype, np.inexact):
            change, control = float((a != b).sum()), float((a != moved).sum())
            size, tolerance = float(a.size), _CONTROL * control
        else:
            info = self.types.finfo(a.dtype)
            if a.dtype.itemsize < 4:
                a, moved, b = (x.astype(np.float32) for x in (a, moved, b))
            if not (np.isfinite(a).all() and np.isfinite(moved).all()):
                return 0.0, 0.0, -1.0, "nan or inf"
            size, change, control = (float(abs(x).max(initial=0)) for x in (a, a - b, a - moved))
            change = change if np.isfinite(b).all() else 1e300
            tolerance = _CONTROL * control + _ROUNDING * float(info.eps) * size + float(info.tiny)
        if tolerance > max(_SHARP * size, 1e-30):
            return change, tolerance, -1.0, "one ulp of the inputs changes it as much"
        return change, tolerance, min(change / (tolerance or 1e-300), 1e300), ""


def _leaves(shape: Any) -> list[Any]:
    return [leaf for s in shape.tuple_shapes() for leaf in _leaves(s)] if shape.is_tuple() else [shape]


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what XLA and plugins print is no answer
    worker: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            worker = worker or Worker()
            answer = getattr(worker, request.pop("do"))(**request)
        except ImportError as error:
            answer = {"missing": str(error)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
