"""JUnit XML: a test case for each module, as every CI system shows them."""

from xml.sax.saxutils import escape, quoteattr

from hlofuse.format.escape import printable
from hlofuse.reports.check.model import Check, Finding, Level
from hlofuse.reports.check.phrases import at, figures, one_line


def check_junit(check: Check) -> str:
    """A suite whose cases are the modules, and the baseline's modules that are not there."""
    cases = []
    for m in check.modules:
        out = f"    <system-out>{_text(_others(m.findings) or figures(m.profile.figures))}</system-out>\n"
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
    place = next((f.where for f in broken if f.where.file), None)
    if place is not None:
        name += f" file={_attribute(place.file)}" + (f' line="{place.line}"' if place.line else "")
    # A test case has one failure at most in what most readers take.
    lines = "\n".join(f"{at(f.where) or '?'}: {one_line(f)}" for f in broken)
    message = "; ".join(f.message for f in broken)
    failure = (
        f'    <failure type="{broken[0].code.value}" message={_attribute(message)}>{_text(lines)}</failure>\n'
    )
    return f"  <testcase {name}>\n{failure}{out}  </testcase>\n"


def _others(findings: tuple[Finding, ...]) -> str:
    return "\n".join(f"{f.level.value}: {one_line(f)}" for f in findings if f.level is not Level.ERROR)


def _text(text: str) -> str:
    return escape("\n".join(map(printable, text.split("\n"))))


def _attribute(text: str) -> str:
    return quoteattr(printable(text))
