"""Many modules compared with many, by name: an upgrade at a glance."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hlofuse.diff.accounts import Accounts, FlagChange
from hlofuse.diff.model import FusionKind, ModuleDiff, only_annotations
from hlofuse.inputs.many import Many
from hlofuse.ir import HlofuseError


@dataclass(frozen=True, slots=True)
class ModuleChange:
    """The change of one module in figures; each pair is BEFORE and AFTER."""

    name: str
    files: tuple[str, str]
    kernels: tuple[int, int] = (0, 0)
    bytes: tuple[int, int] = (0, 0)
    unknown: tuple[int, int] = (0, 0)
    """Custom calls, which `bytes` leave out."""
    us: tuple[float, float] | None = None
    temporary: tuple[int, int] | None = None
    """Bytes of temporary memory at its peak; None where one side's is not known."""
    flags: tuple[FlagChange, ...] = ()
    same: bool = False
    same_program: bool = False
    """Nothing but fusions differs, or notes for later passes and the runtime."""
    fusions: Mapping[FusionKind, int] | None = None
    error: str | None = None
    """Why it could not be compared."""

    @property
    def weight(self) -> float:
        """The size of the change: time if known, else bytes."""
        pair = self.us or self.bytes
        return abs(pair[1] - pair[0])


@dataclass(frozen=True, slots=True)
class BatchDiff:
    modules: tuple[ModuleChange, ...]
    """The largest change first, equal modules last."""
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    """Inputs that could not be read, with the reason."""

    @property
    def same(self) -> bool:
        """Every module has its like."""
        return not (self.only_before or self.only_after) and all(m.same for m in self.modules)

    @property
    def compared(self) -> tuple[ModuleChange, ...]:
        return tuple(m for m in self.modules if m.error is None)


def diff_many(
    old: Many,
    new: Many,
    compare: Callable[[str], tuple[ModuleDiff, Accounts]],
    progress: Callable[[int, int], None],
) -> BatchDiff:
    """Compare what has the same name on both sides; one module at a time is in memory.

    A module that cannot be read is reported in its row, not raised. HlofuseError where no name matches.
    """
    before, after = old.files, new.files
    both = [name for name in before if name in after]
    if not both:
        raise HlofuseError("nothing to compare: no module of BEFORE has the same name as one of AFTER")
    rows = []
    for done, name in enumerate(both):
        progress(done, len(both))
        files = str(before[name]), str(after[name])
        try:
            rows.append(_row(name, files, *compare(name)))
        except HlofuseError as e:
            rows.append(ModuleChange(name, files, error=str(e).split("\n")[0]))
    rows.sort(key=lambda r: (r.error is not None, r.same, -r.weight, r.name))
    return BatchDiff(
        tuple(rows),
        tuple(name for name in before if name not in after),
        tuple(name for name in after if name not in before),
        (*old.skipped, *new.skipped),
    )


def _row(name: str, files: tuple[str, str], found: ModuleDiff, accounts: Accounts) -> ModuleChange:
    b, a = accounts.before.totals, accounts.after.totals
    return ModuleChange(
        name,
        files,
        (b.kernels, a.kernels),
        (b.cost.bytes_accessed, a.cost.bytes_accessed),
        (b.cost.unknown, a.cost.unknown),
        (b.us, a.us) if b.us is not None and a.us is not None else None,
        accounts.temporary_bytes,
        accounts.flags,
        found.same,
        not found.edits or only_annotations(found.edits),
        Counter(change.kind for change in found.fusions),
    )
