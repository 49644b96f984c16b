"""`verify --format json`; the schema is in docs/json.md."""

from dataclasses import asdict, replace
from typing import Any

from hlofuse.format.fields import fields
from hlofuse.reports.verify.model import Report, Verdict

SCHEMA = "hlofuse.verify/3"


def report_json(report: Report) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        **fields(report, "target agrees"),
        "modules": len(report.verdicts),
        **fields(report, "exact skipped"),
        **fields(report, "tried", asdict),
        **fields(report, "verdicts", _verdict),
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
