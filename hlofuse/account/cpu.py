"""Times of kernels on a CPU, by the rates of a calibrated device."""

from collections import defaultdict
from collections.abc import Sequence

from hlofuse.account.traffic import KernelCosts
from hlofuse.analysis.async_ops import wrapped_operation
from hlofuse.analysis.kernels import is_kernel, is_small_call
from hlofuse.cost.cpu.device import CpuDevice, chosen_cpu
from hlofuse.cost.cpu.work import Work, add_work, work_of
from hlofuse.ir.graph import Instruction
from hlofuse.passes.cpu.calls import parallel_tasks
from hlofuse.releases import Release, Span
from hlofuse.rules import cpu_emitters
from hlofuse.rules.settings import AS_XLA, first_verdict

_COPIES_UPDATED_ARRAYS = Span(since="0.11.1", until="0.11.2")
"""An update in a loop that is compiled whole copies its array (jax-ml/jax#40101)."""
_SLEEPS_AFTER = 10.0
"""Microseconds after which a waiting thread sleeps."""
_CHEAP_FLOPS = 1000
"""FLOP below which XLA runs a program in the calling thread."""
_CONCURRENT, _LARGE_BUFFER = 8, 512
"""Fewer launches, and launches on smaller buffers, run one after the other."""


class CpuTimes:
    """Estimates on one CPU, of code that one release of XLA emits."""

    def __init__(self, release: Release, device: CpuDevice | None = None) -> None:
        """By the device that the environment chooses, unless one is given."""
        self.device = device or chosen_cpu()
        self._copies = _COPIES_UPDATED_ARRAYS.includes(release.name)
        self._costs = KernelCosts()

    def us(self, kernel: Instruction) -> float | None:
        """Microseconds of one run without its launch; None where it is not known."""
        work = self.work(kernel)
        return None if work is None else self.device.us(work)

    def kind(self, kernel: Instruction) -> str:
        """The emitter or library that runs a kernel: the kind that its error is of."""
        if is_small_call(kernel):
            return "loop compiled whole"
        verdict = first_verdict(cpu_emitters.RULES, wrapped_operation(kernel) or kernel, AS_XLA)
        return verdict.rule.runs if verdict else ""

    def kind_text(self, kernel: Instruction) -> str:
        """The kind of code, with its error: `sort ±1.5×`."""
        kind = self.kind(kernel)
        return f"{kind} ±{self.device.error(kind):.1f}×"

    def work(self, kernel: Instruction) -> Work | None:
        """The amounts of one run without its launch; None where nothing is known of it."""
        if is_small_call(kernel):
            return self._loop_work(kernel)
        threads, caches = self.device.threads, self.device.caches
        operation = wrapped_operation(kernel) or kernel
        inputs = threads, caches, _inputs_of_work(operation)
        if inputs not in _CACHE:
            if len(_CACHE) >= _MOST_CACHED:
                _CACHE.clear()
            tasks, moved = parallel_tasks(operation, threads), self._costs.instruction(kernel).bytes_accessed
            _CACHE[inputs] = work_of(operation, self.kind(kernel), tasks, caches, moved)
        return _CACHE[inputs]

    def _loop_work(self, call: Instruction) -> Work | None:
        """The work of a loop that is compiled whole, all iterations."""
        found = defaultdict(float, {"loop compiled whole": 1.0})
        for computation, runs in self._costs.inside(call)[0].items():
            for kernel in filter(is_kernel, computation):
                if is_small_call(kernel):
                    continue
                work = self.work(kernel)
                if work is None:
                    return None
                found["kernel of a whole loop"] += runs
                add_work(found, {**work, "task": 0.0}, runs)
                if self._copies:
                    copied = _updated_bytes(kernel)
                    found[f"copy {self.device.caches.level(copied)}"] += 2 * copied * runs
        return dict(found)

    def launch_work(self, runs: int, is_concurrent: bool) -> Work:
        """One launch of `runs`."""
        if runs <= 1:
            return {"launch": 1}
        return {"concurrent launch in a loop" if is_concurrent else "launch in a loop": 1}

    def is_concurrent(self, kernels: Sequence[Instruction]) -> bool:
        """True for launches of a computation that XLA may run at once (`ThunkExecutor::Options`)."""
        sizes = (leaf.byte_size for k in kernels for _, leaf in k.shape.leaves())
        return len(kernels) >= _CONCURRENT and any(size > _LARGE_BUFFER for size in sizes)

    def launch_us(self, runs: int, is_concurrent: bool) -> float:
        """Microseconds of one launch, as `launch_work`."""
        return self.device.us(self.launch_work(runs, is_concurrent)) or 0.0

    def call_us(self, call: Work, flops: int, kernels_us: float) -> float:
        """Microseconds of a call (`Account.call_work`) of a program whose kernels take so long."""
        return self.device.us(call | handoff_work(flops, kernels_us)) or 0.0


def handoff_work(flops: int, kernels_us: float) -> Work:
    """The handing over of a program to another thread.

    XLA runs a program of few FLOP in the calling thread (`PjRtCpuRawLoadedExecutable::Execute`). For
    another the caller waits, which costs more once it sleeps.
    """
    return {"handoff": min(1.0, kernels_us / _SLEEPS_AFTER) if flops >= _CHEAP_FLOPS else 0.0}


_CACHE: dict[object, Work | None] = {}
"""The work of kernels by structure: a change of a module leaves most of them as they are."""
_MOST_CACHED = 20_000
_DECIDING = "lhs_contracting_dims lhs_batch_dims dim_labels window slice_sizes custom_call_target".split()
_WITH_ATTRIBUTES = frozenset("convolution custom-call dot gather reduce-window select-and-scatter".split())


def _inputs_of_work(kernel: Instruction) -> object:
    """Equal for kernels of equal work."""
    inside = kernel.fused_computation.instructions if kernel.opcode == "fusion" else [kernel]
    place = {x: k for k, x in enumerate(inside)}
    rows = []
    for x in inside:
        operands = tuple([place.get(o, o.shape) for o in x.operands])
        more = (
            [i.opcode for c in x.called_computations for i in c]
            if x is not kernel or len(inside) == 1
            else []
        )
        if x.opcode in _WITH_ATTRIBUTES:
            more += [x.attributes.raw(name) or "" for name in _DECIDING]
        rows.append((x.opcode, x.shape, x.dimensions, operands, tuple(more)))
    given = tuple([o.shape for o in kernel.operands])
    return kernel.fusion_kind, kernel.attributes.raw("backend_config"), given, tuple(rows)


def _updated_bytes(kernel: Instruction) -> int:
    """Bytes of the array that a kernel updates in place; 0 for others."""
    root = kernel.fused_root if kernel.opcode == "fusion" else kernel
    return root.shape.byte_size if root.opcode == "dynamic-update-slice" else 0
