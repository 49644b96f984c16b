"""`hlofuse upgrade --format json`; the schema is in docs/json.md."""

from collections.abc import Sequence
from typing import Any

from hlofuse.format.fields import fields
from hlofuse.pipelines.differences import ReleaseDifference
from hlofuse.reports.common.json import totals_json
from hlofuse.reports.comparison.json import flipped_json
from hlofuse.reports.upgrade.model import Upgrade

SCHEMA = "hlofuse.upgrade/3"


def upgrade_json(found: Sequence[Upgrade], old: str, new: str) -> dict[str, Any]:
    """The modules, worst first, as JSON values."""
    return {
        "schema": SCHEMA,
        "from": old,
        "to": new,
        "changes": [_difference(d) for d in found[0].considered] if found else [],
        "modules": [
            {
                **fields(f, "name same"),
                **fields(f, "totals_from=before totals_to=after totals_compiled=compiled", totals_json),
                "change_us": f.change_us,
                "causes": [
                    {**_difference(c.difference), "undone": c.is_undone, "totals": totals_json(c.totals)}
                    for c in f.causes
                ],
                **fields(f, "flipped=comparison.flipped", flipped_json),
            }
            for f in found
        ],
    }


def _difference(d: ReleaseDifference) -> dict[str, Any]:
    return fields(d, "kind name title xla=releases mirrors=source")
