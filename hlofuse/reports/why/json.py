"""`why --format json`; the schema is in docs/json.md."""

from collections.abc import Sequence
from typing import Any

from hlofuse.format.fields import fields
from hlofuse.reports.common.costs import detail_json
from hlofuse.reports.common.json import created_by_json, place_json
from hlofuse.reports.why import Decision, PairAnswer, Story

SCHEMA = "hlofuse.why/3"


def answers_json(answers: Sequence[Story | PairAnswer], queries: Sequence[str]) -> dict[str, Any]:
    """The answer, or all of them in `answers` where the names have several meanings."""
    if len(answers) == 1:
        return {**why_json(answers[0]), "asked": list(queries)}
    each = [{k: v for k, v in why_json(a).items() if k != "schema"} for a in answers]
    return {"schema": SCHEMA, "about": "several", "asked": list(queries), "answers": each}


def why_json(answer: Story | PairAnswer) -> dict[str, Any]:
    """A story or a pair as JSON values; `about` tells which."""
    if isinstance(answer, Story):
        return {
            "schema": SCHEMA,
            "about": "instruction",
            "instruction": place_json(answer.described),
            "fate": answer.fate,
            **fields(answer, "holder kernels", place_json),
            **fields(answer, "holds meant copies"),
            **fields(answer, "as_producer as_consumer", _decision),
            **fields(answer, "made_by=created_by", created_by_json),
            **fields(answer, "rewrites", _decision),
            **_before_fusion(answer),
        }
    return {
        "schema": SCHEMA,
        "about": "pair",
        **fields(answer, "producer consumer", place_json),
        "inside": [{"name": name, "holder": holder} for name, holder in answer.inside],
        **fields(answer, "swapped outcome said_of=refused_user"),
        **fields(answer, "settled_by decisions", _decision),
        **fields(answer, "shared_kernels=shared producer_kernels consumer_kernels", place_json),
        **fields(answer, "bytes_between path"),
        **fields(answer, "made_by=created_by", created_by_json),
        "cost": detail_json(answer.cost),
        **_before_fusion(answer),
    }


def _before_fusion(answer: Story | PairAnswer) -> dict[str, Any]:
    """Only of names that are not there at the input of fusion."""
    changes = [fields(c, "name what pass=pass_name by") for c in answer.before_fusion]
    return {"before_fusion": changes} if changes else {}


def _decision(d: Decision) -> dict[str, Any]:
    out: dict[str, Any] = fields(
        d, "pass=pass_name event steps rule=rule.code title=rule.title reason figures"
    )
    if d.event == "rewrite":
        out |= {"from": list(d.removed), "to": list(d.added)}
    else:
        out |= fields(d, "producer consumer")
    if d.event == "fuse":
        out |= fields(d, "fusion created duplicated")
    return out
