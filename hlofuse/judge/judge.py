"""Compiles and runs two modules by XLA:CPU in a separate process, and compares their values."""

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Literal

from msgspec import to_builtins

from hlofuse.account import Account
from hlofuse.analysis.custom_calls import partitions_of
from hlofuse.analysis.kernels import origin
from hlofuse.format import printable
from hlofuse.inputs.release import default_python
from hlofuse.ir import HlofuseError, Instruction, Module, Record, copy_module, parse_module, print_module
from hlofuse.ir.fusing import inline_calls
from hlofuse.ir.grouping import reach
from hlofuse.ir.record import Json
from hlofuse.ir.shape import INTEGER_TYPES

SCALES = (0.1, 1.0)
TIMEOUT = 300.0


class Refused(HlofuseError):
    """XLA does not compile or run a module, or not in time; the message has the reason."""


class Compiled(Record):
    """XLA:CPU's optimized module `text`, and its input `given`, which came through StableHLO."""

    kernels: int
    instructions: int
    text: str
    given: str


class Difference(Record):
    """The largest difference of an output's elements, for floats of one `sign` or (0) both. For integers and
    predicates `change` counts differing elements. `excess` is change by tolerance, −1 where the output
    decides nothing, with the reason in `why`."""

    scale: float
    sign: int
    output: int
    change: float
    tolerance: float
    excess: float
    why: str


class Timed(Record):
    """Measured times of a program in microseconds."""

    runs: Sequence[float]  # Each run, as the caller sees it
    kernels: Mapping[str, tuple[int, float]]
    """Launches of each instruction in one run, and their time together; empty without a profile."""

    @property
    def us(self) -> float:
        """The lower quartile of the runs: the fastest is rare, and other work moves the median."""
        return _lower_quartile(self.runs)

    @property
    def noise(self) -> float:
        """The part by which the quarters of the measurement differ, in the order of time."""
        return (max(self.quarters) - min(self.quarters)) / self.us

    @property
    def quarters(self) -> list[float]:
        """The same of each quarter of the runs, in the order of time."""
        n = len(self.runs) // 4
        return [_lower_quartile(self.runs[k * n : k * n + n]) for k in range(4)]

    def least_gain(self, changed: "Timed") -> float:
        """Microseconds that a program run alternately with this one saves in each quarter."""
        return min(a - b for a, b in zip(self.quarters, changed.quarters, strict=True))


def _lower_quartile(runs: Sequence[float]) -> float:
    return sorted(runs)[len(runs) // 4]


class Judgement(Record):
    """The verdict of XLA:CPU on the values of two modules; `a` or `b` is None if it does not compile."""

    verdict: Literal["same", "different", "cannot tell", "refused"]
    reason: str
    a: Compiled | None
    b: Compiled | None
    differences: tuple[Difference, ...] = ()
    in_range: bool = False  # Different only for integers outside of the arrays that they choose from

    def to_json(self) -> Json:
        """As JSON values, without the texts."""
        both = {"a": self.a, "b": self.b}
        sides = {k: s and {"kernels": s.kernels, "instructions": s.instructions} for k, s in both.items()}
        return {"schema": "hlofuse.judge/3", **to_builtins(self), **sides}


class Judge(AbstractContextManager["Judge", None]):
    """A process with the user's JAX that compiles and runs modules in sequence; a context manager. python:
    by default $HLOFUSE_PYTHON or this one. timeout: seconds for each step. A process that crashes or takes
    longer is replaced at the next step. xla_flags: its XLA_FLAGS. Raises `HlofuseError` without JAX."""

    def __init__(
        self, python: str | None = None, timeout: float = TIMEOUT, xla_flags: Sequence[str] = ()
    ) -> None:
        self.python = default_python(python)
        self.timeout = timeout
        self._xla_flags = xla_flags
        self._folder = tempfile.TemporaryDirectory()
        self._errors = Path(self._folder.name, "stderr")
        self._process: Any = None
        self._limits: dict[str, dict[int, int]] = {}

    def __exit__(self, *_: object) -> None:
        self._end()
        self._folder.cleanup()

    def compile(self, module: Module, flags: Iterable[str] = (), *, key: str = "a") -> Compiled:
        """XLA:CPU's result for a module, or for the operations of a fused one; raises `Refused`."""
        if partitions_of(module) > 1:
            raise HlofuseError(f"{printable(module.name)} is partitioned over devices, but judge runs on one")
        if any(x.opcode in ("fusion", "bitcast") for x in module.instructions()):
            from hlofuse.passes.common.make import reshape_bitcasts

            module = copy_module(module)
            inline_calls(module, lambda x: x.is_fusion)
            reshape_bitcasts(module)
        file = Path(self._folder.name, "module.hlo")
        file.write_text(print_module(module), encoding="utf-8")
        values = dict(f.removeprefix("--").split("=", 1) for f in flags)
        answer = self._request(do="compile", key=key, file=str(file), flags=values)
        found = parse_module(answer["text"])
        self._limits[key] = index_limits(found)
        kernels = Account(found, backend="cpu").totals.kernels
        return Compiled(kernels, found.instruction_count, **answer)

    def judge(
        self,
        a: Module,
        b: Module,
        *,
        scales: Sequence[float] = SCALES,
        seed: int = 0,
    ) -> Judgement:
        """Judge whether `b` computes what `a` does, up to ten times the effect of moving inputs by an ulp."""
        if _signature(a) != _signature(b):
            raise HlofuseError("the modules have different parameters or results")
        how: Json = {"scales": list(scales), "seed": seed, "limits": {}}
        found = {}
        in_range = False
        try:
            for key, module in (("a", a), ("b", b)):
                found[key] = self.compile(module, key=key)
                rows = self._request(do="run", key=key, **how)["rows"]
            differences = tuple(Difference(*row) for row in rows)
            verdict, reason = _verdict(differences)
            how["limits"] = self._limits["a"] | self._limits["b"]
            if verdict == "different" and how["limits"]:
                again = [self._request(do="run", key=key, **how)["rows"] for key in "ab"][1]
                if in_range := _verdict([Difference(*row) for row in again])[0] == "same":
                    reason += "; same for indices in range"
        except Refused as error:
            reason = f"XLA rejects {key.upper()}: {error}"
            return Judgement("refused", reason, found.get("a"), found.get("b"))
        return Judgement(verdict, reason, found["a"], found["b"], differences, in_range)

    def facts(self) -> Json:
        """The release of jaxlib, `jaxlib`, and the number of threads that it may use, `threads`."""
        return self._request(do="facts")

    def time(
        self,
        keys: Sequence[str],
        seconds: float = 0.2,
        *,
        profile: bool = True,
        inputs: str | None = None,
    ) -> dict[str, Timed]:
        """Times of compiled programs by key, run alternately for so many seconds; raises `Refused`. `inputs`
        is an npz file with their arguments in order, which are random else, integers that choose elements
        within what the first program chooses from."""
        how = {"seconds": seconds, "profile": profile, "inputs": inputs, "limits": self._limits[keys[0]]}
        answer = self._request(do="time", keys=list(keys), **how)
        return {k: Timed(answer["runs"][k], answer["kernels"].get(k, {})) for k in keys}

    def _request(self, **request: Any) -> Json:
        """The process's answer to a request; raises `Refused` for an error, a crash or a timeout."""
        process = self._process = self._process or self._start()
        late = threading.Timer(self.timeout, process.kill)
        late.daemon = True  # Ctrl-C ends the program without waiting for it
        late.start()
        with suppress(OSError):  # it is no more, and gives no answer
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        line = process.stdout.readline()
        in_time = late.is_alive()
        late.cancel()
        if not line.endswith("\n"):
            message = self._end()
            raise Refused(message if in_time else f"no result within {self.timeout:g} s")
        answer: Json = json.loads(line)
        if "missing" in answer:
            hint = 'pip install ".[capture]" from a checkout of hlofuse, or set HLOFUSE_PYTHON to one with it'
            raise HlofuseError(printable(f"{self.python} needs jax: {hint} ({answer['missing']})"))
        if "error" in answer:
            raise Refused(printable(" ".join(answer["error"].split())[:600]))
        return answer

    def _start(self) -> Any:
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"}
        if self._xla_flags:
            environment["XLA_FLAGS"] = " ".join([environment.get("XLA_FLAGS", ""), *self._xla_flags])
        pipes: Json = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        try:
            with self._errors.open("w") as errors:
                command = [self.python, str(Path(__file__).with_name("worker.py"))]
                return subprocess.Popen(command, stderr=errors, env=environment, **pipes)
        except OSError as error:
            raise HlofuseError(f"cannot run {printable(self.python)}: {error.strerror or error}") from None

    def _end(self) -> str:
        process, self._process = self._process, None
        if process is None:
            return ""
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=5)
        process.kill()
        last = [x.strip()[:300] for x in self._errors.read_text(errors="replace").splitlines() if x.strip()]
        return printable("; ".join([f"the process ended with status {process.wait()}", *last[-3:]]))


def judge(
    a: Module, b: Module, *, python: str | None = None, timeout: float = TIMEOUT, **how: Any
) -> Judgement:
    """Judge whether `b` computes what `a` does: `Judge.judge`, with its `scales` and `seed`, in a process."""
    with Judge(python, timeout) as process:
        return process.judge(a, b, **how)


def _verdict(found: Sequence[Difference]) -> tuple[Literal["same", "different", "cannot tell"], str]:
    worst = max(found, key=lambda d: d.excess, default=None)
    if worst is not None and worst.excess > 1:
        off = f"{worst.change:.3g}; tolerance {worst.tolerance:.3g}"
        return "different", f"output {worst.output} differs by {off} (inputs of magnitude {worst.scale:g})"
    decided = {d.output for d in found if not d.why}
    for d in found:
        if d.output not in decided:
            return "cannot tell", f"output {d.output} cannot be compared for any inputs: {d.why}"
    return "same", "all outputs agree"


def index_limits(module: Module) -> dict[int, int]:
    """The least length along which integers of a parameter choose elements, by the parameter's number."""
    found: dict[int, int] = {}

    def integers(values: Iterable[Instruction]) -> list[Instruction]:
        return [y for y in map(origin, values) if y.is_array and y.element_type in INTEGER_TYPES]

    for x in module.instructions():
        for index, length in _indices(x):
            for y in reach(integers([index]), lambda y: integers(y.operands)):
                if y.is_parameter and y.computation is module.entry:
                    found[y.parameter_number] = min(length, found.get(y.parameter_number, length))
    return found


def _indices(x: Instruction) -> Iterable[tuple[Instruction, int]]:
    """The integers by which an instruction chooses elements, with the length of what they choose from."""
    operands, lengths = x.operands, x.operand.sizes if x.operands else ()
    if x.opcode in ("dynamic-slice", "dynamic-update-slice"):
        return zip(operands[1 + (x.opcode == "dynamic-update-slice") :], lengths, strict=True)
    name = {"gather": "start_index_map", "scatter": "scatter_dims_to_operand_dims"}.get(x.opcode)
    chosen = [lengths[d] for d in x.attributes.get(name) or ()] if name else []
    return [(operands[len(operands) // 2], min(chosen))] if chosen else ()


def _signature(module: Module) -> list[list[object]]:
    values = *module.entry.parameters, module.entry.root
    return [[leaf.key_ignoring_layout for leaf in x.shape.leaf_shapes] for x in values]
