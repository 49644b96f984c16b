"""Changes of a module before optimizations, compiled by XLA: what `explain --prove` tries."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import compress
from math import inf
from operator import mul
from pathlib import Path
from tempfile import TemporaryDirectory

from hlofuse import __version__
from hlofuse.account import Totals
from hlofuse.account.bound import open_end
from hlofuse.account.tpu import TO_OTHER_TILES, tile_bytes
from hlofuse.analysis.cost import CostAnalysis
from hlofuse.analysis.kernels import inside, source_bearer
from hlofuse.capture.capturing import capture_modules, versions_of
from hlofuse.capture.model import CaptureError, settled_destination
from hlofuse.cost.tpu import TpuDevice, scoped_vmem, tpu_devices
from hlofuse.inputs.release import default_python
from hlofuse.ir import HlofuseError, Instruction, Module, print_module, replace
from hlofuse.ir.copy import copy_module
from hlofuse.judge.judge import Judge
from hlofuse.passes.common import make
from hlofuse.pipelines.flags import joined
from hlofuse.reports.advice.catalogue import WRITTEN
from hlofuse.reports.advice.written import prepared
from hlofuse.reports.common.facts import place_of
from hlofuse.reports.common.recipe_page import gain_on_a_tpu
from hlofuse.reports.verdict.candidates import UNKNOWN, rewritten
from hlofuse.reports.verdict.model import Suggestion, Verdict
from hlofuse.reports.verdict.phrases import COMPILED, VALUES
from hlofuse.reports.whatif.model import Trial, trial_of
from .cache import place_of_content, read, write
from .opening import open as open_report
from .program import Program
from .questions import Explain

_SEARCHED = 12_000  # instructions of a module that takes about 3 s
_JUDGED = 3  # suggestions whose values are compared
_LARGE = 0.001  # of all bytes: a kernel without a time that may matter
_SECONDS = 60.0  # for a run of a program on the CPU
_VMEM = "--xla_tpu_scoped_vmem_limit_kib"
_LEAST_GAIN = 0.02  # of the time, as expected
_GAIN_OF_BLOCKS = 0.25  # of a kernel's time: larger ones gained 19 to 75% of it in three programs of four
Candidate = tuple[Suggestion, "Module | None"]
"""A change that was not tried, and the module with it; None for a flag."""


def tried_verdict(report: Program, options: Explain) -> Verdict | None:
    """The verdict that `explain` shows, with what XLA compiled where that is asked for; None with a name."""
    if options.name is not None:
        return None
    found = report.verdict
    if options.prove:
        return _proved(report, found, options.tries, options.python)
    return found if found.tiles is None else _with_candidates(report, found)


def _with_candidates(report: Program, v: Verdict) -> Verdict:
    """A TPU's verdict with the changes that may apply, not tried; a large module is not searched.
    What is expected to gain next to nothing, by the row for a v5e on a recipe's page, is left out."""
    try:
        written = report.before_optimizations("explain").module
    except HlofuseError:
        return replace(v, not_proved="XLA:TPU is closed; --prove needs the dump directory")
    if written.instruction_count > _SEARCHED:
        return v
    candidates = _candidates(report, v, prepared(written))
    found = {}
    for s, _ in candidates:
        gains = _gain_where_it_touches(s)
        is_located = v.totals.us is not None and not s.touches_unknown and (s.touched or s.flag)
        if gains and (not is_located or s.touched * gains >= _LEAST_GAIN):
            found[s.recipe or s.flag] = s
    return replace(v, untried=tuple(sorted(found.values(), key=_most_expected)))


def _proved(
    report: Program,
    v: Verdict,
    tries: int,
    python: str | None,
) -> Verdict:
    """The verdict with changes that XLA compiled, at most so many, and what they gain over the module itself.
    `Verdict.not_proved` says why none could be. HlofuseError without the module before optimizations."""
    written = report.before_optimizations("explain --prove").module
    start = prepared(written)
    suggested = {s.recipe or s.flag for s in (*v.suggestions, *v.untried)}
    found = list(_candidates(report, v, start))
    rank = _most_touched if v.tiles is None else _most_expected
    found.sort(key=lambda c: ((c[0].recipe or c[0].flag) not in suggested, *rank(c[0])))
    remaining = [] if v.tiles is not None else list(v.suggestions)
    helpful = []
    untimed = []
    tried = set()
    with report.options.listener.progress("compiling changes") as progress:
        try:
            compile = _Compiler(report, python, tries)
            bases = [compile(m) for m in (copy_module(written), start)]
        except HlofuseError as error:
            return replace(v, not_proved=str(error))
        for number, (s, module) in enumerate(found):
            progress(number, len(found))
            try:
                after = compile(module or start, s.flag)
                # XLA may compile the simplified start better or worse than what is written.
                base, trial = min(((b, _trial(b, after)) for b in bases), key=lambda c: c[1].gain)
                trial = replace(trial, roughly_timed=s.trial.roughly_timed)
            except CaptureError:
                continue
            except _NoMore:
                break
            tried.add(s.text + s.flag)
            is_timed = trial.us_saved is not None or base.us is None
            if trial.helps(base) and (v.tiles is None or is_timed):
                helpful.append((replace(s, trial=trial), module))
            elif not is_timed and (trial.helps(base) or trial.gain > (0.0, 0, 0)):
                untimed.append(replace(s, trial=trial))
    helpful.sort(key=lambda c: tuple(-x for x in c[0].trial.gain))
    with report.options.listener.activity("comparing values"):
        new = list(_judged(helpful, start, python))
    remaining = [s for s in remaining if s.text + s.flag not in tried]
    left = v.untried if v.tiles is None else [s for s, _ in found]
    untried = (*untimed, *(s for s in left if s.text + s.flag not in tried))
    order = sorted([*new, *remaining], key=lambda s: (s.kind == "report", *(-x for x in s.trial.gain)))
    return replace(v, suggestions=tuple(order), untried=untried, compiled=len(tried))


def _trial(base: Totals, after: Totals) -> Trial:
    """Without a time where more kernels lack one; those that lack one in `base` save at least their bound."""
    trial = trial_of(base, after, COMPILED)
    return trial if after.unknown <= base.unknown else replace(trial, us_saved=None)


def _candidates(
    report: Program,
    v: Verdict,
    start: Module,
) -> Iterator[Candidate]:
    backend = report.identity.backend.value
    module, machine = report.account.module, report.account.machine
    rows = report.account.rows
    least = _LARGE * sum(r.cost.bytes_accessed * r.runs for r in rows)
    unknown = [open_end(r) and r.cost.bytes_accessed * r.runs >= least for r in rows]
    kernels = [_sources(r.instruction, module) for r in rows]
    times = [r.total_us or 0.0 for r in rows]
    total = sum(times) or 1.0
    rate = machine.xla_memory_bandwidth / 1e6 if isinstance(machine, TpuDevice) else inf
    for r in rewritten(start, backend, loops=True):
        rewriting = WRITTEN.get(r.recipe.name)
        if rewriting is not None and rewriting.rounds:
            continue
        rough = rewriting.rough if rewriting is not None and backend != "tpu" else ""
        s = r.suggestion(replace(UNKNOWN, roughly_timed=rough))
        old, new = (Counter(map(_work, m.instructions())) for m in (start, r.module))
        goes = (x for x in start.instructions() if old[_work(x)] != new[_work(x)])
        changed = {*s.sources, *(_source(x, start) for x in goes)} - {None}
        touched = [min(1.0, sum(map(parts.__getitem__, changed))) for parts in kernels]
        share = sum(map(mul, times, touched)) / total
        more = (x for x in r.module.instructions() if new[_work(x)] > old[_work(x)])
        moved = (tile_bytes(x, "T(8,128)") + _hbm_equivalent(x, machine) for x in more)
        brought = 0 if r.recipe.unrolls else sum(moved)
        if 0 < share * total * rate < brought:
            continue  # what it moves takes longer than what it replaces
        yield replace(s, touched=share, touches_unknown=any(compress(unknown, touched))), r.module
    flags = [s for s in (*v.suggestions, *v.untried) if s.flag]
    is_set = any(f.lstrip("-").startswith(_VMEM.lstrip("-")) for f in report.identity.flags)
    if isinstance(machine, TpuDevice) and machine.vmem_size > 2 * machine.scoped_vmem_size and not is_set:
        fills = [scoped_vmem(r.instruction) >= machine.scoped_vmem_size / 2 for r in rows]
        own = [(machine.cycles_us(r.instruction) or 0.0) * r.runs for r in rows]
        share = sum(compress(own, fills)) / total
        flag = f"{_VMEM}={machine.vmem_size // 2048}"
        text = "Let a kernel use half of VMEM"
        flags.append(Suggestion("flag", text, "", (), 0, UNKNOWN, flag=flag, touched=share))
    yield from ((s, None) for s in flags)


def _hbm_equivalent(x: Instruction, machine: object) -> float:
    """Bytes of a product that VMEM does not hold, written and read; of a reshape as many as take its time."""
    size = x.shape.buffer_size
    if x.opcode in ("dot", "convolution"):
        return 2 * size if isinstance(machine, TpuDevice) and size >= machine.vmem_size else 0
    if not x.is_reshape or x.shape.is_effective_scalar:
        return 0
    (short, old), (long, new) = sorted((s.rank, s.dimensions[-1:]) for s in (x.shape, x.operand.shape))
    is_copy = old != new and (1,) not in (old, new) and (short > 1 or (long > 1 and new != (128,)))
    return 2 * TO_OTHER_TILES * size * is_copy


def _most_touched(s: Suggestion, gains: float = 1.0) -> tuple[bool, float]:
    return not s.touches_unknown, -s.touched * gains


def _gain_where_it_touches(s: Suggestion) -> float:
    """The part that a change on a TPU may save of what it touches: as much as on its page."""
    return gain_on_a_tpu(s.recipe) if s.recipe else _GAIN_OF_BLOCKS


def _most_expected(s: Suggestion) -> tuple[bool, float]:
    return _most_touched(s, _gain_where_it_touches(s))


def _work(x: Instruction) -> object:
    return x.computation_name, x.opcode, *(v.shape.leaves_size for v in (x, *x.operands))


def _sources(
    kernel: Instruction,
    module: Module,
) -> Counter[object]:
    """The parts that operations have in a kernel's work, by source; 1 for its line if its end has none."""
    operations = list(inside(kernel))
    bearer = _source(source_bearer(kernel, module), module)
    counts, work = CostAnalysis(), Counter[object]()
    for x in operations:
        source = _source(x, module) or bearer
        work[source] += counts.instruction(x).flops + x.shape.leaves_size + tile_bytes(x)
    parts = Counter({source: n / (work.total() or 1) for source, n in work.items()})
    if not operations[-1].op_name:
        parts[place_of(kernel, module).source] = 1
    return parts


def _source(x: Instruction, module: Module) -> object:
    """The name and line that an operation shares with those that XLA made of it; None without a name."""
    return (x.op_name, module.source_of(x)) if x.op_name else None


def _judged(
    helpful: list[Candidate],
    start: Module,
    python: str | None,
) -> Iterator[Suggestion]:
    """The changes of code that do not change values; the first are run by XLA:CPU."""
    with Judge(python, _SECONDS) as judge:
        for number, (s, module) in enumerate(helpful):
            verdict, values = "", VALUES
            if module is not None and number < _JUDGED:
                with suppress(HlofuseError):
                    judged = judge.judge(start, module)
                    verdict = judged.verdict
                    if judged.in_range:  # as where a number outside of a table had a row of zeros
                        verdict, values = "same", f"{VALUES} for indices in range"
            if verdict == "same":
                s = replace(s, trial=replace(s.trial, how=f"{COMPILED}, {values}"))
            if verdict != "different":
                yield s


class _NoMore(Exception):
    pass


class _Compiler:
    """Compiles changed modules for the build of a report, and keeps the totals of each in the cache."""

    def __init__(
        self,
        report: Program,
        python: str | None,
        tries: int,
    ) -> None:
        self._python = python
        self._left = tries
        self._listener = report.options.listener
        identity = report.identity
        self._flags = identity.flags
        device = identity.device.value if identity.device is not None else None
        if identity.backend.value == "tpu" and device not in tpu_devices():
            raise CaptureError("give --device: the TPU is not known")
        mesh = ((None, identity.partitions),) if identity.partitions > 1 else ()
        self._to = settled_destination(identity.backend.value, device, None, mesh)
        self._environment = (__version__, python, versions_of(default_python(python)))

    def __call__(self, module: Module, flag: str = "") -> Totals:
        """The totals of XLA's final module; `CaptureError` where XLA refuses it, `_NoMore` after the last."""
        make.reshape_bitcasts(module)
        text, flags = print_module(module), " ".join(joined((*self._flags, *flag.split())))
        place = place_of_content(repr((text, self._to, flags, self._environment)))
        cached: Totals | None = read(place, self._listener) if place is not None else None
        if cached is not None:
            return cached
        if self._left == 0:
            raise _NoMore
        self._left -= 1
        with TemporaryDirectory(prefix="hlofuse-prove-") as scratch:
            file = Path(scratch, "module.hlo")
            file.write_text(text, encoding="utf-8")
            out = Path(scratch, "captured")
            to = self._to
            captured = capture_modules([("module", file)], to, out, python=self._python, flags=flags)
            if captured.errors:
                raise CaptureError(next(iter(captured.errors.values())))
            found = open_report(str(captured.largest.folder)).totals
        if place is not None:
            write(place, found)
        return found
