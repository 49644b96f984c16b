"""For a job summary and a comment: GitHub's markdown, cut where GitHub would refuse it."""

from collections.abc import Iterator

from hlofuse.format.escape import markdown, markdown_code, table
from hlofuse.format.units import plural
from hlofuse.reports.check.model import Check, Finding, Level, ModuleCheck
from hlofuse.reports.check.phrases import figures, listed, origin, pair, verdict, worth
from hlofuse.reports.verdict.phrases import answer_lines

MOST_BYTES = 1_000_000
"""GitHub refuses a step's summary above 1 MiB whole; some room is left for what others write there."""

_ICONS = {Level.ERROR: "❌", Level.WARNING: "⚠️", Level.NOTE: "ℹ️"}


def check_markdown(check: Check, most: int = MOST_BYTES) -> str:
    """The verdict, a table of all modules, and the findings; what does not fit is counted at the end.

    `most` is in bytes of UTF-8. Modules that broke come first, so that what is cut matters least.
    """
    modules = sorted(check.modules, key=lambda m: (not m.failed, not m.findings))
    head = f"## hlofuse check: {verdict(check)}\n"
    if check.what_if:
        head += f"\nWhat if: {', '.join(map(markdown_code, check.what_if))}\n"
    head += "".join(f"\n> **{markdown(note)}**\n" for note in check.notes)
    parts = _Parts(most, head)
    parts.table(modules)
    seen: set[str] = set()
    for m in modules:
        for n, text in enumerate(_details(m, seen)):
            parts.add(text, finding=n > 0)
    if check.others:
        parts.add("\n### Not in the input\n", finding=False)
        for f in check.others:
            parts.add(f"\n- {_ICONS[f.level]} {markdown(f.module)}: {markdown(f.message)}\n")
    return parts.text()


class _Parts:
    """Text that stays below a size, and what was left out of it."""

    def __init__(self, most: int, head: str) -> None:
        self._room = most - len(head.encode()) - 400  # for the last line
        self._texts = [head]
        self._rows_cut = self._findings_cut = 0

    def add(self, text: str, *, finding: bool = True) -> bool:
        size = len(text.encode())
        fits = size <= self._room and not self._findings_cut
        if fits:
            self._texts.append(text)
            self._room -= size
        else:
            self._findings_cut += finding
        return fits

    def table(self, modules: list[ModuleCheck]) -> None:
        """Rows take half of the room at most."""
        rows: list[list[str]] = []
        left = self._room // 2
        for m in modules:
            base = figures(m.baseline.figures) if m.baseline is not None else ""
            row = ["❌" if m.failed else "✅", markdown(m.profile.name), figures(m.profile.figures), base]
            left -= len(" | ".join(row).encode()) + 5
            if left < 0:
                break
            rows.append(row)
        self._rows_cut = len(modules) - len(rows)
        self.add("\n" + table(["", "module", "now", "baseline"], rows), finding=False)

    def text(self) -> str:
        cut = []
        if self._rows_cut:
            cut.append(f"{plural(self._rows_cut, 'module')} table rows")
        if self._findings_cut:
            cut.append(plural(self._findings_cut, "finding"))
        if cut:
            self._texts.append(
                f"\n**Truncated to fit a job summary:** {' and '.join(cut)} omitted. `hlofuse check --format"
                " json` has all.\n"
            )
        return "".join(self._texts)


def _details(m: ModuleCheck, seen: set[str]) -> Iterator[str]:
    if not m.findings:
        return
    yield f"\n### {markdown(m.profile.name)}\n"
    for f in m.findings:
        yield _finding(f, seen)
    if m.verdict is not None:
        yield "\n" + "".join(f"> {markdown(line)}  \n" for line in answer_lines(m.verdict))


def _finding(f: Finding, seen: set[str]) -> str:
    """`seen`: rules that have been explained further up."""
    place = origin(f.where)
    lines = [
        f"\n{_ICONS[f.level]} **{markdown(f.message)}**" + (f" at {markdown_code(place)}" if place else "")
    ]
    for title, kernels in (("was", f.before), ("now", f.now)):
        lines += [f"- {title}: {markdown_code(line)}" for line in listed(kernels)]
    for h in f.refused_edges:
        source = f", {markdown_code(origin(h.where))}" if h.where.file else ""
        lines.append(f"- {h.rule} refused {markdown_code(pair(h))} ({worth(h)}{source})")
        if h.rule not in seen:
            seen.add(h.rule)
            lines.append(f"  *{markdown(h.title)}.* {markdown(h.advice)}")
    return "\n".join([lines[0], "", *lines[1:]]).rstrip() + "\n"
