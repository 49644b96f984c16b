"""The parts of a check: plain data, written by a file for each format, and as JSON (docs/json.md)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from msgspec import to_builtins

from hlofuse.account.measured import Measured
from hlofuse.analysis.kernels import Loop
from hlofuse.format import fields
from hlofuse.ir import Json, Record, Strings, replace
from hlofuse.reports.common.model import Place, both_names
from hlofuse.reports.common.profile import profile_json
from hlofuse.reports.verdict.json import verdict_json
from hlofuse.reports.verdict.model import Verdict


@dataclass(frozen=True, slots=True, order=True)
class Where:
    """A place in the user's program; `file` is relative to the project where that can be determined."""

    file: str = ""
    line: int = 0  # 0 where it is not known
    function: str = ""
    layer: str = field(default="", compare=False)
    """The model's layer, where the dump's names show one; it is no part of equality or of a baseline."""

    def __str__(self) -> str:
        text = f"{self.file}:{self.line}" if self.line else self.file
        return f"{text} {self.function}".strip() or "?"

    @property
    def without_line(self) -> "Where":
        """The same wherever lines were added above it."""
        return replace(self, line=0)


class BaselineKernel(Record):
    """One kernel after fusion, identified by its contents, as names change with every compilation."""

    what: str  # `kLoop: divide, subtract`; the operations inside by name, or the opcode of what is no fusion
    where: Where = Where()
    name: str = ""  # Its final name in the module at hand, as in a profiler; empty for a baseline's kernel
    input_name: str = ""  # Its name at the end of fusion

    @property
    def shown(self) -> str:
        """The final name, then that at the end of fusion."""
        return both_names(self.name, self.input_name or self.name)

    @property
    def operations(self) -> frozenset[str]:
        """The operations inside, without their counts."""
        return frozenset(part.partition("×")[0] for part in self.what.partition(": ")[2].split(", ") if part)


@dataclass(frozen=True, slots=True)
class Figures:
    """A module in the numbers that can be bounded."""

    kernels: int
    bytes: int  # Bytes read and written, as XLA's cost analysis counts them, of all iterations
    us: float | None = None
    """Estimated microseconds, launches included, to 0.01; None for targets without a model of it."""
    measured_us: float | None = None  # Measured µs of the kernels in one run, to 0.01; None without a profile
    memory: int | None = None  # Bytes of arguments, results, temporaries and constants; None if unknown
    devices: int = field(default=1, compare=False)
    """Devices that the program is yet to be divided over; in no baseline."""
    has_floors: bool = field(default=False, compare=False)  # `us` has lower bounds in it; in no baseline
    unknown: int = field(default=0, compare=False)  # Custom calls whose bytes are not known; in no baseline


class Profile(Record):
    """The kernels and totals of one module after fusion, as a baseline stores and a check measures them."""

    name: str  # The key for pairing: the module's name, or its folder's in a corpus
    target: str
    device: str | None
    release: str  # The XLA that was repeated; empty for a module that was taken as XLA left it
    figures: Figures
    kernels: tuple[BaselineKernel, ...]
    loops: tuple[Loop, ...] = ()  # Outermost loops that launch kernels; a baseline does not keep them
    measured: Measured | None = None
    """The measured times of the module; None without a profile, and for a baseline."""
    at_peak: Where = Where()
    """The place of the largest temporary array at the peak; empty for a baseline, and if not known."""
    cpu: str | None = None  # The CPU that its time is estimated for; None on others


class RefusedEdge(Record):
    """A pair that a rule keeps apart."""

    rule: str
    title: str
    advice: str
    producer: Place
    consumer: Place | None
    kernels: frozenset[str]  # The kernels on either side, by their names at the end of fusion
    where: Where
    bytes_between: int
    us_at_stake: float | None
    message: str = ""


class Level(StrEnum):
    """The severity of a finding: an error fails the check."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Code(StrEnum):
    """The kind of a finding. Stable: SARIF and JSON refer to these."""

    meaning: str

    def __new__(cls, code: str, meaning: str) -> "Code":
        found = str.__new__(cls, code)
        found._value_, found.meaning = code, meaning
        return found

    MAX_KERNELS = "max-kernels", "More kernels than the budget allows"
    MAX_BYTES = "max-bytes", "More bytes moved than the budget allows"
    MAX_TIME = "max-time", "More time than the budget allows"
    MAX_MEMORY = "max-memory", "More memory than the budget allows"
    MORE_KERNELS = "more-kernels", "More kernels than in the baseline"
    MORE_BYTES = "more-bytes", "More bytes moved than in the baseline"
    MORE_TIME = "more-time", "More time than in the baseline"
    MORE_MEMORY = "more-memory", "More memory than in the baseline"
    TIME_UNCOMPARED = "time-not-compared", "One time is measured, the other is not, or is of another CPU"
    FEWER = "better", "Better than the baseline"
    SPLIT = "fusion-split", "A fusion of the baseline was split"
    CHANGED = "fusion-changed", "Kernels of the baseline have changed contents"
    MERGED = "fusion-merged", "Kernels of the baseline were merged"
    NEW = "kernel-new", "A kernel is not in the baseline"
    REMOVED = "kernel-gone", "A kernel of the baseline was removed"
    MODULE_NEW = "module-new", "A module is not in the baseline"
    MODULE_MISSING = "module-missing", "A module of the baseline is not in the input"


class Finding(Record):
    code: Code
    level: Level
    module: str
    message: str
    where: Where = Where()
    before: tuple[BaselineKernel, ...] = ()
    now: tuple[BaselineKernel, ...] = ()
    refused_edges: tuple[RefusedEdge, ...] = ()  # Refused edges between the kernels, most significant first


def first_place(found: Iterable[Finding | RefusedEdge | BaselineKernel]) -> Where:
    return next((f.where for f in found if f.where.file), Where())


class ModuleCheck(Record):
    profile: Profile
    file: str
    baseline: Profile | None
    findings: tuple[Finding, ...]
    verdict: Verdict | None = None  # The headroom of a module that failed; None where it was not replayed

    @property
    def failed(self) -> bool:
        return any(f.level is Level.ERROR for f in self.findings)


class Check(Record):
    modules: tuple[ModuleCheck, ...]
    others: tuple[Finding, ...] = ()  # Findings of no module at hand
    baseline: str | None = None  # The file or folder that was compared with
    updated: bool = False  # The baseline has been rewritten
    what_if: Strings = ()
    notes: Strings = ()  # The origins of modules that XLA did not write

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(f for m in self.modules for f in m.findings) + self.others

    @property
    def failed(self) -> bool:
        """Something broke: exit status 1."""
        return any(f.level is Level.ERROR for f in self.findings)


def check_json(check: Check) -> Json:
    return {
        "schema": "hlofuse.check/3",
        **fields(check, "failed baseline updated what_if"),
        **({"approximate": list(check.notes)} if check.notes else {}),
        **fields(check, "modules", _module),
        **fields(check, "others", _finding),
    }


def _module(m: ModuleCheck) -> Json:
    p = m.profile
    return {
        **fields(m, "module=profile.name file target=profile.target device=profile.device cpu=profile.cpu?"),
        **fields(m, "xla=profile.release? failed"),
        "figures": _figures(p.figures),
        "baseline": _figures(m.baseline.figures) if m.baseline is not None else None,
        "baseline_xla": (m.baseline.release or None) if m.baseline is not None else None,
        **fields(p, "loops", to_builtins),
        **fields(p, "kernels", kernel_json),
        **fields(m, "findings", _finding),
        **profile_json(p.measured),
        **(verdict_json(m.verdict) if m.verdict is not None else {}),
    }


def _figures(f: Figures) -> Json:
    return fields(f, "kernels bytes us measured_us memory_bytes=memory devices")


def where_json(w: Where) -> Json | None:
    """A place in the program; None where the dump does not say."""
    if not w.file:
        return None
    return fields(w, "file line? function? layer?")


def kernel_json(k: BaselineKernel) -> Json:
    return {**fields(k, "name? input_name? what"), "where": where_json(k.where)}


def _finding(f: Finding) -> Json:
    return {
        **fields(f, "code=code.value level=level.value module message"),
        "where": where_json(f.where),
        **fields(f, "before now", kernel_json),
        **fields(f, "held=refused_edges", refused_edge_json),
    }


def refused_edge_json(h: RefusedEdge) -> Json:
    """A pair that a rule keeps apart, under final names and those at the end of fusion."""
    return {
        **fields(h, "rule title reason=message? producer=producer.label producer_input_name=producer.name"),
        "consumer": h.consumer and h.consumer.label,
        "consumer_input_name": h.consumer and h.consumer.name,
        "where": where_json(h.where),
        **fields(h, "bytes_between us_at_stake"),
    }
