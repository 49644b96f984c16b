"""Compiles and runs modules in the user's Python: the standard library, numpy and jax only. Each line of
standard input is a request in JSON, answered by a line on standard output."""

import json
import math
import os
import re
import sys
import tempfile
import time
from bisect import bisect_left
from contextlib import suppress
from pathlib import Path
from typing import Any

_ROUNDING, _CONTROL = 4, 10
"""Tolerances for equal programs: ulps of the largest value, and a factor on the control's change."""
_SHARP = 0.2  # a tolerance above this share of the largest value decides nothing
_MOST_DRAWN = 1_000_003  # Numbers drawn for an array; a larger one repeats them, out of step with dimensions
_MOST_LAUNCHES = 100_000  # launches that a profile holds: it is read event by event
_FEWEST_RUNS = 5


class Worker:
    """Compiled programs and their results, by key."""

    def __init__(self) -> None:
        import jax
        import jaxlib
        import numpy
        from jax._src.lib import xla_client

        jax.config.update("jax_enable_x64", True)
        self.jax, self.np, self.xla, self.types = jax, numpy, xla_client, jax.numpy
        self.release = jaxlib.version.__version__
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

    def run(self, key: str, scales: list[float], seed: int, limits: dict[str, int]) -> dict[str, Any]:
        """Run on random inputs, `a` also on moved ones, others compared with it; see `index_limits`."""
        rows = []
        for place in ((n, sign) for n in range(len(scales)) for sign in (0, 1, -1)):
            random, scale = self.np.random.default_rng([seed, *map(abs, place)]), scales[place[0]]
            shapes = enumerate(self.programs[key][1])
            values = [self._input(random, s, scale, place[1], limits.get(str(n))) for n, s in shapes]
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

    def facts(self) -> dict[str, Any]:
        """The release, and the threads that this process may use."""
        affinity = getattr(os, "sched_getaffinity", None)
        threads = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
        return {"jaxlib": self.release, "threads": threads}

    def time(
        self,
        keys: list[str],
        seconds: float,
        profile: bool,
        inputs: str | None,
        limits: dict[str, int],
    ) -> dict[str, Any]:
        """Times of programs in microseconds, run in turns on the same inputs for so long: see `Judge.time`.
        With `profile`, `kernels` has the launches of each instruction in one run, and their least time."""
        arrays = {}
        for key in keys:
            random, shapes = self.np.random.default_rng(0), self.programs[key][1]
            values = self._given(inputs, shapes) if inputs else []
            most = [limits.get(str(k)) for k in range(len(shapes))]
            values = values or [self._input(random, s, 1.0, 0, n) for s, n in zip(shapes, most, strict=True)]
            arrays[key] = [self.jax.device_put(v, self.device) for v in values]

        def run(key: str) -> float:
            begin = time.perf_counter()
            results = self.programs[key][0].execute_sharded(arrays[key])
            for result in results.disassemble_into_single_device_arrays():
                result[0].block_until_ready()  # at once, as a caller does: a thread that sleeps wakes late
            return (time.perf_counter() - begin) * 1e6

        found: dict[str, list[float]] = {key: [] for key in keys}
        for key in keys:
            run(key)  # the first run finds no memory and no caches
        end = time.perf_counter() + seconds
        while len(found[keys[0]]) < _FEWEST_RUNS or time.perf_counter() < end:
            for key in keys:
                found[key].append(run(key))
        kernels = {}
        for key in keys if profile else ():
            traced, kernels[key] = self._profile(key, run, 1)
            launches = 1 + sum(count for count, _ in kernels[key].values())
            often = min(max(3, int(seconds * 5e5 / min(found[key]))), 30, _MOST_LAUNCHES // launches)
            if often > 1:
                traced, kernels[key] = self._profile(key, run, often)
            whole = sum(us for _, us in kernels[key].values())
            extra = max(min(traced, whole) - min(found[key]), 0.0)  # tracing takes time of each launch
            one = extra / launches
            own = {k: (n, max(us - n * one, 0.0)) for k, (n, us) in kernels[key].items()}
            scale = (whole - extra) / (sum(us for _, us in own.values()) or 1.0)
            kernels[key] = {k: (n, us * scale) for k, (n, us) in own.items()}
        return {"runs": found, "kernels": kernels}

    def _profile(self, key: str, run: Any, often: int) -> tuple[float, dict[str, tuple[int, float]]]:
        """The least time of a traced run; the launches of each instruction in one, and their least time."""
        options = self.jax.profiler.ProfileOptions()
        options.host_tracer_level, options.python_tracer_level = 2, 0
        with tempfile.TemporaryDirectory() as folder:
            with self.jax.profiler.trace(folder, profiler_options=options):
                traced = min([run(key) for _ in range(often)])
            file = next(Path(folder).rglob("*.xplane.pb"))
            data = self.jax.profiler.ProfileData.from_file(str(file))
            lines = [line for plane in data.planes for line in plane.lines]
        best: dict[str, tuple[int, float]] = {}
        text = self.programs[key][0].hlo_modules()[0].to_string()
        for launches in launched(lines, frozenset(_CONTAINERS.findall(text))).values():
            for name, (count, us) in own_times(launches).items():
                if name not in best or (-count, us) < (-best[name][0], best[name][1]):
                    best[name] = count, us
        return traced, best

    def _outputs(self, key: str, values: list[Any]) -> list[Any]:
        arrays = [self.jax.device_put(v, self.device) for v in values]
        results = self.programs[key][0].execute_sharded(arrays).disassemble_into_single_device_arrays()
        return [self.np.asarray(r[0]) for r in results]

    def _given(self, file: str, shapes: list[Any]) -> list[Any]:
        """The arrays of an npz file as inputs of these shapes; ValueError where they are others."""
        with self.np.load(file) as read:
            arrays = [read[name] for name in read.files]
        kinds = [self.np.dtype(s.numpy_dtype()) for s in shapes]
        if len(arrays) == len(kinds):  # an array of a type that numpy lacks is one of bytes
            arrays = [a.view(k) if a.dtype.kind == "V" else a for a, k in zip(arrays, kinds, strict=True)]
        found = [f"{a.dtype}{list(a.shape)}" for a in arrays]
        expected = [f"{k}{list(s.dimensions())}" for k, s in zip(kinds, shapes, strict=True)]
        if found != expected:
            raise ValueError(f"{file} has {', '.join(found)}; the program takes {', '.join(expected)}")
        return arrays

    def _input(
        self,
        random: Any,
        array: Any,
        scale: float,
        sign: int,
        limit: int | None = None,
    ) -> Any:
        """Floats of size `scale`, coins, integers from 0 up to `limit` or small ones, a few negative."""
        np, kind, count = self.np, array.numpy_dtype(), min(math.prod(array.dimensions()), _MOST_DRAWN)
        if kind == np.bool_:
            values = random.random(count) < 0.5
        elif self.types.issubdtype(kind, np.integer):
            info = self.types.iinfo(kind)
            least, most = (0, limit) if limit else (-3, 17)
            values = random.integers(max(least, int(info.min)), min(most, int(info.max) + 1), count)
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
            change = float((a != b).sum())
            control = float((a != moved).sum())
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


_CONTAINERS = re.compile(r"%?([\w.-]+) = [^\n]*? (?:while|conditional|call)\((?![^\n]*small_call)")
"""Instructions that run others, which have their own times."""
Launches = list[tuple[str, float, float]]


def launched(lines: Any, containers: Any) -> dict[Any, Launches]:
    """By run: the instruction of each launch, its start and its end in nanoseconds; `lines` are threads. XLA
    reports an end on the thread that finishes the last task, after all that this thread starts then."""
    begun = []
    ended = {}
    starts: list[list[float]] = []
    for line in lines:
        own = []
        for event in line.events:
            facts = dict(event.stats)
            if "hlo_op" in facts and event.name not in containers:
                begun.append((event, facts))
                own.append(event.start_ns)
            elif event.name.startswith("end: "):
                ended[facts.get("_c")] = event.start_ns, len(starts)
        starts.append(sorted(own))
    found: dict[Any, Launches] = {}
    for event, facts in begun:
        end = event.start_ns + event.duration_ns
        if facts.get("_p") in ended:
            last, number = ended[facts["_p"]]
            following = bisect_left(starts[number], end)
            after = starts[number][following] if following < len(starts[number]) else last
            end = max(end, min(last, after))
        found.setdefault(facts.get("run_id"), []).append((event.name, event.start_ns, end))
    return found


def own_times(launches: Launches) -> dict[str, tuple[int, float]]:
    """Launches and microseconds of each instruction; those that run at once share the time."""
    times = dict.fromkeys((name for name, _, _ in launches), (0, 0.0))
    changes = sorted(
        [(start, 1, k) for k, (_, start, _) in enumerate(launches)]
        + [(end, 0, k) for k, (_, _, end) in enumerate(launches)]
    )
    running: set[int] = set()
    now = 0.0
    for at, is_start, k in changes:
        for other in running:
            count, us = times[launches[other][0]]
            times[launches[other][0]] = count, us + (at - now) / 1e3 / len(running)
        now = at
        if is_start:
            running.add(k)
            count, us = times[launches[k][0]]
            times[launches[k][0]] = count + 1, us
        else:
            running.discard(k)
    return times


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what XLA and plugins print is no answer
    worker = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            worker = worker or Worker()
            answer = getattr(worker, request.pop("do"))(**request)
        except ImportError as error:
            answer = {"missing": str(error)}
        except Exception as error:
            kind = (
                "" if type(error) is ValueError else f"{type(error).__name__}: "
            )  # `_given` writes for users
            answer = {"error": f"{kind}{error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
