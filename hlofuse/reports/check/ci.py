"""A check for CI: GitHub's workflow commands and Markdown, JUnit XML, and SARIF 2.1.0."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from hlofuse.format import plural
from hlofuse.format.escape import markdown, markdown_code, printable, table
from hlofuse.format.paths import is_file
from hlofuse.ir import Json
from hlofuse.reports.verdict.phrases import answer_lines
from .model import Check, Code, Finding, Level, ModuleCheck, Where, first_place
from .text import at, figures, listed, one_line, origin, pair, verdict, worth

_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def check_github(check: Check, root: Path) -> str:
    """One command for each finding, errors first: GitHub shows the first ten of a step."""
    ordered = sorted(check.findings, key=lambda f: list(Level).index(f.level))
    return "".join(f"{_command(f, root)}\n" for f in ordered) + f"hlofuse check: {verdict(check)}\n"


def _command(f: Finding, root: Path) -> str:
    properties = {}
    message = one_line(f)
    if is_file(root, f.where.file):
        properties["file"] = f.where.file
        if f.where.line:
            properties["line"] = str(f.where.line)
    elif f.where.file:
        # A file that is not in the repository: GitHub would drop the place, so it is said in words.
        message = f"{at(f.where)}: {message}"
    properties["title"] = f"hlofuse: {f.code.meaning}"
    listed = ",".join(
        f"{name}={_message(value).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in properties.items()
    )
    return f"::{_COMMANDS[f.level]} {listed}::{_message(message)}"


def _message(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def check_junit(check: Check) -> str:
    """A suite whose cases are the modules, and the baseline's modules that are not there."""
    cases = []
    for m in check.modules:
        others = (f"{f.level.value}: {one_line(f)}" for f in m.findings if f.level is not Level.ERROR)
        text = _text("\n".join(others) or figures(m.profile.figures))
        out = f"    <system-out>{text}</system-out>\n"
        cases.append(_case(m.profile.name, m.findings, out))
    cases += [_case(f.module, (f,), "") for f in check.others]
    failures = sum("<failure" in c for c in cases)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="0"'
    suite = f'  <testsuite name="hlofuse check" {counts}>\n{"".join(cases)}  </testsuite>\n'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites {counts}>\n{suite}</testsuites>\n'


def _case(module: str, findings: tuple[Finding, ...], out: str) -> str:
    broken = [f for f in findings if f.level is Level.ERROR]
    name = f'classname="hlofuse.check" name={_attribute(module)}'
    if not broken:
        return f"  <testcase {name}>\n{out}  </testcase>\n"
    place = first_place(broken)
    if place.file:
        name += f" file={_attribute(place.file)}" + (f' line="{place.line}"' if place.line else "")
    # A test case has one failure at most in what most readers take.
    lines = "\n".join(f"{at(f.where) or '?'}: {one_line(f)}" for f in broken)
    message = "; ".join(f.message for f in broken)
    failure = (
        f'    <failure type="{broken[0].code.value}" message={_attribute(message)}>{_text(lines)}</failure>\n'
    )
    return f"  <testcase {name}>\n{failure}{out}  </testcase>\n"


def _text(text: str) -> str:
    return escape("\n".join(map(printable, text.split("\n"))))


def _attribute(text: str) -> str:
    return quoteattr(printable(text))


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
HELP = (
    "hlofuse check compares a module after XLA's fusion passes with a budget or a stored baseline. A result"
    " names the rules that refused fusions; hlofuse rule CODE explains each."
)


def check_sarif(check: Check, version: str) -> Json:
    """One run of hlofuse of that version; a result for each finding."""
    codes = list(dict.fromkeys(f.code for f in check.findings))
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "hlofuse",
                        "semanticVersion": version,
                        "rules": [
                            {
                                "id": code.value,
                                "shortDescription": {"text": code.meaning},
                                "help": {"text": HELP},
                            }
                            for code in codes
                        ],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(f, codes) for f in check.findings],
            }
        ],
    }


def _result(f: Finding, codes: list[Code]) -> Json:
    parts = [f.code.value, f.module, f.where.file, f.where.function]  # the same wherever lines move
    parts += sorted(k.what for k in f.before) + sorted(k.what for k in f.now)
    fingerprint = sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]
    result: Json = {
        "ruleId": f.code.value,
        "ruleIndex": codes.index(f.code),
        "level": f.level.value,
        "message": {"text": _plain(one_line(f))},
        "partialFingerprints": {"hlofuse/v1": fingerprint},
        "properties": {
            "module": printable(f.module),
            "rules": list(dict.fromkeys(h.rule for h in f.refused_edges)),
        },
    }
    location: Json = {
        "logicalLocations": [{"name": printable(f.module), "kind": "module"}],
    }
    if f.where.file:
        location["physicalLocation"] = _physical(f.where)
    result["locations"] = [location]
    related = [h for h in f.refused_edges if h.where.file]
    if related:
        result["relatedLocations"] = [
            {
                "id": n,
                "physicalLocation": _physical(h.where),
                "message": {"text": _plain(f"{h.rule}: {h.producer.shown}")},
            }
            for n, h in enumerate(related, 1)
        ]
    return result


def _plain(text: str) -> str:
    return printable(text).replace("[", "\\[").replace("{", "{{").replace("}", "}}")


def _physical(where: Where) -> Json:
    # Of an absolute path of another machine only the name is left (`format/paths.py`).
    found: Json = {"artifactLocation": {"uri": quote(where.file, safe="/._-~+@"), "uriBaseId": "%SRCROOT%"}}
    if where.line:
        found["region"] = {"startLine": where.line}
    return found


MOST_BYTES = 1_000_000  # GitHub refuses a step's summary above 1 MiB whole; others may write there, too
_ICONS = {Level.ERROR: "❌", Level.WARNING: "⚠️", Level.NOTE: "ℹ️"}


def check_markdown(check: Check, most: int = MOST_BYTES) -> str:
    """The verdict, a table of all modules, and the findings; what does not fit is counted at the end. `most`
    is in bytes of UTF-8. Modules that broke come first, so that what is cut matters least."""
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
    def __init__(self, most: int, head: str) -> None:
        self._room = most - len(head.encode()) - 400  # for the last line
        self._texts = [head]
        self._rows_cut = self._findings_cut = 0

    def add(self, text: str, *, finding: bool = True) -> None:
        size = len(text.encode())
        if size <= self._room and not self._findings_cut:
            self._texts.append(text)
            self._room -= size
        else:
            self._findings_cut += finding

    def table(self, modules: list[ModuleCheck]) -> None:
        """Rows take half of the room at most."""
        rows = []
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
