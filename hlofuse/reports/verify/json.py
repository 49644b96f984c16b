"""`verify --format json`; the schema is in docs/json.md."""

from dataclasses import asdict, replace
from typing import Any

from hlofuse.reports.verify.model import Report, Verdict

SCHEMA = "hlofuse.verify/1"


def report_json(report: Report) -> dict[str, Any]:
    """The report as JSON values."""
    return {
        "schema": SCHEMA,
        "target": report.target,
        "agrees": report.agrees,
        "modules": len(report.verdicts),
        "exact": report.exact,
        "skipped": list(report.skipped),
        "tried": [asdict(t) for t in report.tried],
        "verdicts": [_verdict(v) for v in report.verdicts],
    }


def _verdict(v: Verdict) -> dict[str, Any]:
    values = asdict(replace(v, head=None))
    del values["head"]
    if v.final is None:
        del values["final"]
    # The keys that scripts read.
    values["remark"] = values.pop("note")
    for p in values["passes"]:
        p["changed_ours"] = p.pop("changed_actual")
    return values
