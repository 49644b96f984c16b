"""A module after fusion, as JSON; the schema is in docs/stages.md."""

from dataclasses import asdict
from typing import Any

from hlofuse.reports.fused.model import Fused

SCHEMA = "hlofuse.explain-fused/1"


def fused_json(f: Fused) -> dict[str, Any]:
    """Everything; `docs/stages.md` says what the fields mean."""
    return {"schema": SCHEMA, **asdict(f)}
