"""XLA:TPU, whose fusion passes are closed: what they did is read off the dumps before and after. Why they did
it is not known; conditions learnt from other programs give likely reasons."""

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain, product
from pathlib import Path

from hlofuse.account import Account
from hlofuse.account.collectives import Collective, started_by
from hlofuse.analysis.kernels import kernels
from hlofuse.diff import FusionChange, diff
from hlofuse.format import bytes_text, fields, plural, printable
from hlofuse.format.terminal import Page, indented, name_text, plain_table
from hlofuse.inputs import dump_directory as dumps
from hlofuse.ir import HlofuseError, Instruction, Json, Module, Record
from hlofuse.passes.fusion.tpu_fusion import Prediction
from hlofuse.reports.common.facts import place_of
from hlofuse.reports.common.lineage import through_views
from hlofuse.reports.common.model import Place
from hlofuse.reports.diff import phrases
from hlofuse.reports.verdict.collectives import collective_rows, row_text
from hlofuse.reports.why import Story
from hlofuse.reports.why.story import meanwhile, timed
from hlofuse.rules.catalogue import Rule
from hlofuse.rules.tpu_fusion import reason


class TpuEdge(Record):
    """Two operations, the second of which uses the first, and whether one kernel holds both."""

    producer: str
    consumer: str
    bytes_between: int
    fused: bool
    rule: str | None = None  # The learnt condition that keeps the two apart; None where none does
    kernels: tuple[frozenset[str], ...] = ()  # The kernels after fusion that hold the one and the other

    def has(self, names: Container[str]) -> bool:
        """True if one of the two, or of their kernels, has one of these names."""
        return any(n in names for n in (self.producer, self.consumer, *chain(*self.kernels)))


class TpuPair(Record):
    """The effect of XLA:TPU's fusion passes on a module."""

    module: str
    before: str
    after: str
    kernels_before: int
    kernels_after: int
    changes: tuple[FusionChange, ...]
    edges: tuple[TpuEdge, ...]
    changed: int  # Edges excluded: other passes changed one of the two
    queries: Sequence[str] = ()  # The names that `edges` are of; empty where all are here


def tpu_files(path: Path, module: str | None = None) -> tuple[Path, Path] | None:
    """The dumps before and after XLA:TPU's fusion passes, in a directory or around a file; None without."""
    is_folder = path.is_dir()
    if is_folder and not dumps.is_corpus_case(path) and (cases := dumps.corpus_cases(path)):  # a capture
        chosen = [c for c in cases if module in (None, c.name, f"jit_{c.name}")]
        return tpu_files(chosen[0]) if len(chosen) == 1 else None
    folder = path if is_folder else path.parent
    before, after = dumps.corpus_file(folder, "before"), dumps.corpus_file(folder, "after")
    if before is not None and after is not None:
        return before, after
    try:
        dumped = dumps.DumpDirectory(path).pick(module) if is_folder else dumps.dumped_module(path)
    except HlofuseError:
        return None
    of_tpu = dumped.of_tpu if dumped is not None else []
    return (of_tpu[0].path, of_tpu[-1].path) if len(of_tpu) > 1 else None


def compare_tpu(before: Module, after: Module) -> TpuPair:
    """The fusions on TPU, and the pairs of kernels before them that one kernel holds or not."""
    found = diff(before, after)
    predicted = Prediction(before)
    edges = []
    changed = 0
    for a, b, size in _pairs(before):
        places = map(found.pairs.after_of, (a, b))
        holders = [frozenset((p.fusion or p.instruction).name for p in own) for own in places]
        together = holders[0] & holders[1]
        rule = None if together else predicted.refusal(a, b)
        if all(holders):
            edges.append(TpuEdge(a.name, b.name, size, bool(together), rule, tuple(holders)))
        else:
            changed += 1
    return TpuPair(
        before.name,
        before.filename or "",
        after.filename or "",
        len(kernels(before)),
        len(kernels(after)),
        found.fusions,
        tuple(edges),
        changed,
    )


def _pairs(module: Module) -> Iterator[tuple[Instruction, Instruction, int]]:
    launched = set(kernels(module))
    for consumer in kernels(module):
        for producer in dict.fromkeys(through_views(o) for o in consumer.operands):
            if producer in launched:
                yield producer, consumer, producer.shape.leaves_size


def edges_of(named: Sequence[Container[str]], edges: Iterable[TpuEdge]) -> tuple[TpuEdge, ...]:
    """The edges that have a name of each."""
    return tuple(e for e in edges if all(map(e.has, named)))


def final_edges(module: Module) -> Iterator[TpuEdge]:
    """The kernels of the final module that read one another, with no reason."""
    for a, b, size in _pairs(module):
        holders = frozenset((a.name,)), frozenset((b.name,))
        yield TpuEdge(a.name, b.name, size, fused=False, kernels=holders)


def kernel_stories(account: Account, names: Container[str], pair: TpuPair | None) -> list[Story]:
    """The kernels of these names, slowest first: times, and why they are apart where a condition says so."""
    apart: dict[str, list[tuple[Place, Rule]]] = {}
    for edge in pair.edges if pair is not None else ():
        if edge.rule is not None:
            rule = Rule(edge.rule, reason(edge.rule).replace(f"; {edge.rule})", ")"), page={})
            for one, other in product(*edge.kernels):
                apart.setdefault(one, []).append((Place(other), rule))
                apart.setdefault(other, []).append((Place(one), rule))
    collectives = {c.instruction: c for c in account.collectives}
    found = []
    for row in account.rows:
        x = row.instruction
        if x.name in names and row.runs:
            place = place_of(x, account.module)
            collective = collectives.get(x)
            notes = (_UNKNOWN,) if collective is None else tuple(_communication(collective, account))
            own = tuple(apart.get(x.name, ())) if collective is None else ()
            story = Story(place, "kernel", apart=own, communication=() if own else notes)
            found.append(timed(story, row, account.kernel(x)))
    return sorted(found, key=lambda s: -(s.us or 0.0) * s.runs)


def _communication(c: Collective, account: Account) -> Iterator[str]:
    """The line of the collective on the first screen, and what runs meanwhile."""
    (row,) = collective_rows([c], lambda x: place_of(x, account.module))
    yield row_text(row).strip()
    if c.overlap is not None:
        yield meanwhile(c.overlap, started_by(c.instruction), account)


_UNKNOWN = "The dumps do not say why it is a kernel of its own."
CLOSED = (
    "XLA:TPU's passes are not public: the dumps show what they did, not why. Reasons are learnt (rule TP)."
)


def print_tpu(p: TpuPair, console: Page) -> None:
    """The result, the fusions that were created, then the pairs that were not fused; of names only these."""
    if p.queries and not p.edges:
        shown = " and ".join(map(printable, p.queries))
        console.print(f"No pair of kernels for {shown} in the dumps, or another pass changed one of the two.")
        return
    if not p.queries:
        _print_fusions(p, console)
    console.print(CLOSED if p.queries else "")
    apart = [e for e in p.edges if not e.fused]
    head = f"{len(apart):,} of {plural(len(p.edges), 'pair')} not fused"
    console.print(head + ", most bytes first" * (len(apart) > 1), style="bold cyan")
    seen = set()
    listed = sorted(p.edges if p.queries else apart, key=lambda e: (e.fused, -e.bytes_between))
    for e in console.first(listed):
        why = f"{e.rule}, as above" if e.rule in seen else reason(e.rule) if e.rule else "reason unknown"
        if e.fused:
            why = "fused"
        seen.add(e.rule or "")
        row = name_text(e.producer, e.consumer)
        if p.queries:
            row.append(f" ({printable(', '.join(dict.fromkeys(map(min, e.kernels))))})")
        indented(console, row.append(f"  {bytes_text(e.bytes_between)}  {why}"))
    console.print_rest(listed)
    if p.changed:
        changed = f"{plural(p.changed, 'pair')} excluded: other passes changed one of the two"
        indented(console, changed, 2, "dim")


def _print_fusions(p: TpuPair, console: Page) -> None:
    console.print(printable(f"{p.module} on TPU: {p.before} → {p.after}"), style="bold")
    console.print(f"{p.kernels_before:,} kernels → {p.kernels_after:,} by the fusion passes", style="bold")
    console.print(CLOSED)
    console.print()
    console.print("TPU fusions", style="bold cyan")
    rows = plain_table(("", "left"), ("", "left"))
    for change in console.first(p.changes):
        what = "\n".join([phrases.what_happened(change), *phrases.inside(change)])
        rows.add_row(str(change.kind), "\n".join(map(printable, what.split("\n"))))
    indented(console, rows)
    console.print_rest(p.changes)


def pair_json(p: TpuPair) -> Json:
    """`fusions` and `pairs`: what was fused, with the files and numbers of kernels."""
    return {
        "files": fields(p, "before after"),
        "kernel_counts": {"before": p.kernels_before, "after": p.kernels_after},
        "fusions": [
            {"kind": str(c.kind)}
            | {key: [i.name for i in getattr(c, key)] for key in ("before", "after", "members", "joined")}
            for c in p.changes
        ],
        "pairs": [
            fields(e, "producer consumer bytes_between rule") | {"fused": {"tpu": e.fused}} for e in p.edges
        ],
        "pairs_changed_by_other_passes": p.changed,
    }
