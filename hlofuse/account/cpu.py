"""Times of kernels on a CPU, by the rates of a calibrated device."""

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from hlofuse.analysis.async_ops import wrapped_operation
from hlofuse.analysis.elementwise import without_views
from hlofuse.analysis.flops import dot_flops
from hlofuse.analysis.hlo_alias import alias_config
from hlofuse.analysis.kernels import end_of, is_kernel, is_small_call
from hlofuse.cost.cpu.device import CpuDevice, chosen_cpu
from hlofuse.cost.cpu.work import FRESH, RESULT, Work, add_work, at_levels, sort_tasks, work_of
from hlofuse.cost.gpu.shapes import strides_of
from hlofuse.ir import Computation, Dims, Instruction, Instructions, Record, reach
from hlofuse.passes.cpu.calls import parallel_tasks
from hlofuse.passes.loop.parts import carried_unchanged, is_element
from hlofuse.releases import Release, Span
from hlofuse.rules import cpu_emitters
from hlofuse.rules.settings import AS_XLA, first_verdict
from .traffic import KernelCosts, border_bytes

_COPIES_UPDATED_ARRAYS = Span(since="0.11.1", until="0.11.2")
"""An update in a loop that is compiled whole copies its array (jax-ml/jax#40101)."""
_SORTS_ROWS_AT_ONCE = Span("0.11.1")
_SLEEPS_AFTER = 30.0  # microseconds after which a waiting thread sleeps
_CHEAP_FLOPS = 1000  # FLOP below which XLA runs a program in the calling thread
_THREADED = ("YNNPACK", "Eigen", "DUCC FFT")  # libraries that use all threads
_CONCURRENT, _LARGE_BUFFER = 8, 512
"""Up to so many launches, and launches on smaller buffers, run one after the other."""
Shares = Mapping[str, float]  # Parts of a kernel's bytes by the cache that holds them
_Value = tuple[Instruction, Dims]


class _Touch(Record):
    """A kernel or a loop, with the bytes that it reads or writes of each value."""

    kernel: Instruction
    values: Mapping[object, float]
    parts: float
    passed: Mapping[object, float] = {}  # The size of values of which each run reads or writes another part


class CpuTimes:
    """Estimates on one CPU, of code that one release of XLA emits."""

    def __init__(self, release: Release, device: CpuDevice | None = None) -> None:
        """By the device that the environment chooses, unless one is given."""
        self.device = device or chosen_cpu()
        self._copies = _COPIES_UPDATED_ARRAYS.includes(release.name)
        self._sorts_rows_at_once = _SORTS_ROWS_AT_ONCE.includes(release.name)
        self._rules = cpu_emitters.rules_of(release)
        self.costs = KernelCosts()
        self._cached = dict[Instruction, tuple[Work | None, float]]()

    def us(self, kernel: Instruction, shares: Shares | None = None, least: bool = False) -> float | None:
        """Microseconds of one run without its launch; None where it is not known. `least`: of what is."""
        return None if (work := self.work(kernel, shares)) is None else self.device.us(work, least)

    def kind(self, kernel: Instruction) -> str:
        """The emitter or library that runs a kernel: the kind that its error is of."""
        if is_small_call(kernel):
            return "loop compiled whole"
        verdict = first_verdict(self._rules, wrapped_operation(kernel) or kernel, AS_XLA)
        return verdict.rule.runs if verdict else ""

    def kind_text(self, kernel: Instruction) -> str:
        """The kind of code, with its error: `sort ±1.5×`."""
        kind = self.kind(kernel)
        return f"{kind} ±{self.device.error(kind):.1f}×"

    def work(self, kernel: Instruction, shares: Shares | None = None) -> Work | None:
        """The amounts of one run, or None. `shares` are those of `reuse`; without, the kernel runs alone."""
        if is_small_call(kernel):
            return self._loop_work(kernel)
        work, parts = self._plain_work(kernel)
        if work is None:
            return None
        size = self.costs.instruction(kernel).bytes_accessed / parts
        found = at_levels(work, shares or {self.device.caches.level(size): 1.0})
        if "task" in found and kernel.parent.callers:
            found["task in a loop"] = found.pop("task")  # a thread that was busy a moment ago is awake
        return found

    def _plain_work(self, kernel: Instruction) -> tuple[Work | None, float]:
        """The amounts of one run wherever its bytes are, and the number of its tasks."""
        if kernel in self._cached:
            return self._cached[kernel]
        threads, operation = self.device.threads, wrapped_operation(kernel) or kernel
        kind, cost = self.kind(kernel), self.costs.instruction(kernel)
        if kind == "sort":
            tasks: float = sort_tasks(operation, threads) if self._sorts_rows_at_once else 1
        else:
            tasks = threads if kind in _THREADED else parallel_tasks(operation, threads, self.costs.counts)
        work = _row_work(kernel) or work_of(operation, kind, tasks, self.device.caches, cost.bytes_accessed)
        self._cached[kernel] = work, tasks
        return self._cached[kernel]

    def reuse(self, computations: Iterable[Computation]) -> dict[Instruction, Shares]:
        """The parts of each kernel's bytes by the cache that holds them when it runs. A value is as far as
        what was moved since it was last read or written. `computations` stand after those that they call, and
        each runs over and over."""
        found = dict[Instruction, Shares]()
        sizes = dict[Computation, float]()
        for computation in computations:
            touches = list(self._touches(computation, sizes))
            outputs = () if computation.callers else _results(computation)
            aliases = alias_config(computation.module).aliases if computation.module else ()
            aliased = {k[0] if k else 0 for k in aliases if len(k) < 2}
            results = {_first_of(x)[0] for k, x in outputs if k not in aliased}
            fresh = {} if computation.callers else _fresh_bytes(touches, results)
            sizes[computation] = whole = sum({v: n for t in touches for v, n in t.values.items()}.values())
            shared = any(t.parts > 1 for t in touches)
            last = dict[object, tuple[float, bool]]()
            clock = 0.0
            for is_second, touch in [(run, t) for run in (False, True) for t in touches]:
                moved = sum(touch.values.values())
                shares = defaultdict[str, float](float)
                for value, size in touch.values.items() if is_second else ():
                    before, is_away = last.get(value, (-whole, shared and value == (touch.kernel, ())))
                    distance = min(whole, clock - before + moved) / touch.parts
                    distance = max(distance, touch.passed.get(value, 0.0))
                    near = self.device.caches.l2 if is_away else 0  # in the cache of another core
                    level = self.device.caches.level(max(distance, near))
                    new = fresh.get(touch.kernel, 0.0) if value == (touch.kernel, ()) else 0.0
                    for place, part in ((level, size - new), ("fresh", new)):
                        if part:
                            shares[place] += part / max(moved, 1)
                    if touch.kernel in results and value == (touch.kernel, ()) and not new:
                        shares[RESULT] = size / max(moved, 1)
                clock += moved
                last |= dict.fromkeys(touch.values, (clock, False))
                last[touch.kernel, ()] = clock, touch.parts > 1
                found[touch.kernel] = dict(shares)
                if touch is touches[-1] and len(computation.parameters) == 1:
                    given = computation.parameter
                    last |= {(given, (k,)): last[x] for k, x in _results(computation) if x in last}
        return found

    def _touches(self, computation: Computation, sizes: Mapping[Computation, float]) -> Iterator[_Touch]:
        """The bytes that each kernel and each loop of a computation moves, in order."""
        module = computation.module
        for x in computation if module and module.is_scheduled else computation.post_order():
            if is_kernel(x):
                cost = self.costs.instruction(x)
                tasks = 1.0 if is_small_call(x) else self._plain_work(x)[1]
                passed = _passed(x)
                values: dict[object, float]
                if passed:
                    values = {_value(o): float(read) for o, read in border_bytes(x)[0].items()}
                else:
                    given = {_value(o): float(o.shape.buffer_size) for o in x.operands}
                    scale = min(1.0, cost.bytes_read / max(sum(given.values()), 1))
                    values = {v: size * scale for v, size in given.items()}
                values[x, ()] = cost.bytes_written
                yield _Touch(x, values, tasks, passed)
            elif x.opcode in ("while", "call", "conditional"):
                inside = [sizes.get(c, 0.0) for c in x.called_computations]
                yield _Touch(x, {x: max(inside, default=0.0)}, 1)

    def _loop_work(self, call: Instruction) -> Work | None:
        found = defaultdict(float, {"loop compiled whole": 1.0})
        counted = self.costs.inside(call)[0]
        shares = self.reuse(counted)
        for computation, runs in counted.items():
            for kernel in filter(is_kernel, computation):
                if is_small_call(kernel):
                    continue
                work = self.work(kernel, shares[kernel])
                if kernel.is_dot:  # no call: LLVM compiles it with the loop
                    work = {"plain dot": float(dot_flops(kernel))}
                if work is None:
                    return None
                found["kernel of a whole loop"] += runs
                add_work(found, {**work, "task in a loop": 0.0}, runs)
                if self._copies:
                    loops = [c for c in computation.callers if c.is_while]
                    is_one_place = bool(loops) and _updates_one_place(kernel)
                    entries = sum(counted.get(c.parent, 1) for c in loops)
                    add_work(found, _updated(kernel), entries if is_one_place else runs)
        return dict(found)

    def launch_work(self, runs: int, together: int) -> Work:
        """One launch of `runs`, where so many may run at once."""
        if runs <= 1:
            return {"launch": 1}
        found = {"launch in a loop": 1, "queued launch": min(together, 1)}
        return found | {"concurrent run": 1 / together if together > 1 else 0}

    def together(self, kernels: Sequence[Instruction]) -> int:
        """Launches that XLA may hand to another thread (`ThunkExecutor::SplitReadyQueue`); 1 where they only
        wait in its queue, 0 where they run as they are scheduled (`ThunkExecutor::ThunkExecutor`)."""
        sizes = (leaf.byte_size for k in kernels for x in (k, *k.operands) for leaf in x.shape.leaf_shapes)
        if len(kernels) <= _CONCURRENT or not any(size > _LARGE_BUFFER for size in sizes):
            return 0
        launched, ready = set(kernels), Instructions()
        waits = {x: len({*x.operands}) for x in kernels[0].parent.post_order()}

        def finish(done: Iterable[Instruction]) -> None:
            pending = [u for x in done for u in x.users][::-1]
            while pending:
                waits[u := pending.pop()] -= 1
                if not waits[u] and u in launched:
                    ready.append(u)
                elif not waits[u]:
                    pending += u.users[::-1]

        finish([x for x, count in waits.items() if not count and x not in launched])
        ready[:] = (k for k in kernels if not waits[k])
        is_queue = False
        for done, x in enumerate(ready, 1):
            if len(ready) - done > _CONCURRENT:
                return len(kernels)
            is_queue |= done < len(ready)
            finish([x])
        return int(is_queue)

    def handoff_work(self, flops: int, kernels_us: float) -> Work:
        """The handing over to another thread, whose end the caller awaits, longer once it sleeps. XLA runs a
        program of few FLOP in the calling thread (`PjRtCpuRawLoadedExecutable::Execute`)."""
        return {"handoff": min(1.0, kernels_us / _SLEEPS_AFTER) if flops >= _CHEAP_FLOPS else 0.0}


def _fresh_bytes(touches: Sequence[_Touch], results: Container[Instruction]) -> Mapping[Instruction, float]:
    """Bytes that each kernel writes to fresh pages: large results, and large temporaries, one allocation."""
    last = {v[0]: k for k, t in enumerate(touches) for v in t.values if isinstance(v, tuple)}
    ends = defaultdict[int, float](float)
    found = dict[Instruction, float]()
    live = peak = 0.0
    for k, t in enumerate(touches):
        sizes = [leaf.byte_size for leaf in t.kernel.shape.leaf_shapes]
        size = min(t.values.get((t.kernel, ()), 0.0), sum(sizes))
        if t.kernel in results:
            found[t.kernel] = min(size, sum(n for n in sizes if n >= FRESH))
        else:
            live += size
            ends[last.get(t.kernel, k)] += size
            found[t.kernel], peak = max(live - peak, 0.0), max(live, peak)
        live -= ends[k]
    return {x: size for x, size in found.items() if peak >= FRESH or x in results}


def _passed(kernel: Instruction) -> dict[object, float]:
    """The bytes of arrays of which a kernel reads or updates a part at a place that is computed."""
    found = dict[object, float]()
    inside = kernel.fused_computation.instructions if kernel.is_fusion else (kernel,)
    for x in inside:
        if x.opcode not in ("dynamic-slice", "dynamic-update-slice"):
            continue
        source = without_views(x.operand)
        if kernel.is_fusion and source.is_parameter:
            found[_value(kernel.operands[source.parameter_number])] = float(source.shape.buffer_size)
        elif source in kernel.operands:
            found[_value(source)] = float(source.shape.buffer_size)
        if x.opcode == "dynamic-update-slice":
            found[kernel, ()] = float(x.shape.buffer_size)
    return found


def _value(x: Instruction) -> _Value:
    """The instruction that computes a value, and the value's place in its result."""
    path: Dims = ()
    while x.opcode in ("bitcast", "get-tuple-element"):
        if x.is_get_tuple_element:
            path = (x.tuple_index, *path)
        x = x.operand
        if x.opcode == "tuple" and path:
            x, path = x.operands[path[0]], path[1:]
    return x, path


def _first_of(value: _Value) -> _Value:
    while True:
        x, path = value
        root = end_of(x)
        if root.opcode in ("scatter", "dynamic-update-slice") and not path:
            source = without_views(root.operand)
            is_given = root is not x and source.is_parameter
            value = _value(x.operands[source.parameter_number] if is_given else source)
        elif x.is_while and path and x.operand.opcode == "tuple":
            value = _value(x.operand.operands[path[0]])
        else:
            return value


def _results(computation: Computation) -> Iterable[tuple[int, _Value]]:
    return enumerate(map(_value, computation.root.outputs))


def _updates_one_place(kernel: Instruction) -> bool:
    """True if a loop updates the same place in each iteration: LLVM has it in a register (3 measured)."""
    root = end_of(kernel)
    place = set(reach(root.operands[2:], lambda i: i.operands))
    if root is not kernel:
        place = {kernel.operands[i.parameter_number] for i in place if i.is_parameter}
    states = {i for i in reach(place, lambda i: i.operands) if i.is_get_tuple_element}
    return states <= {*carried_unchanged(kernel.parent)}


def _row_work(kernel: Instruction) -> Work:
    """A loop's own array, written to the same memory, in which one row is chosen by its number
    (`jnp.where(rows == i, new, old)`): LLVM drops what stores a value where it was read."""
    root, state = end_of(kernel), kernel.parent
    if root is kernel or root.opcode != "select" or not root.rank or not root.element_count:
        return {}
    test = root.operand
    if not test.is_broadcast or test.operand.opcode != "compare":
        return {}
    minor, compared = root.minor_to_major[0], test.operand
    opcodes = {o.opcode if o.past("broadcast").rank else "" for o in compared.operands}
    remaining = without_views(root.operands[{"NE": 1, "EQ": 2}.get(str(compared.raw("direction")), 0)])
    if opcodes != {"", "iota"} or not remaining.is_parameter or minor in test.dimensions:
        return {}
    given = kernel.operands[remaining.parameter_number]
    stored = (k for k, o in enumerate(state.root.operands) if o is kernel)
    if not any(is_element(given, p, k) for k in stored for p in state.parameters[:1]):
        return {}
    rows = root.element_count / root.sizes[minor]
    return {"updated row": rows, "bytes": 2 * root.byte_size / rows}


def _updated(kernel: Instruction) -> Work:
    """XLA writes a loop over the whole array. Where the update is read from an array, LLVM chooses for each
    element. Where it is computed, LLVM drops what stores a value where it was read, and counts the rows. One
    element computed from what others just computed is in a register: its loop has vectors."""
    root = end_of(kernel)
    if root.opcode != "dynamic-update-slice":
        return {}
    array, value, *place = root.operands
    sizes, part = root.sizes, value.sizes
    spanned = next((d for d in root.minor_to_major if part[d] < sizes[d]), None)
    value = without_views(value)
    is_plain = root is kernel or value.is_parameter
    if value.opcode == "select" and array in value.operands[2].operands:  # asks whether it is inside
        value = without_views(value.second)
    if not is_plain and not value.is_parameter and math.prod(part) == 1:
        inside = reach([value], lambda i: i.operands)
        given = (x for x in inside if x.is_parameter and x not in place)
        read = {kernel.operands[x.parameter_number] for x in given}
        if all(is_kernel(x) and x.opcode != "copy" for x in read):
            return {"updated byte": root.byte_size}
    if is_plain or spanned is None:
        return {"element one by one": root.element_count}
    return {"updated row": root.element_count / strides_of(root.shape)[spanned]}
