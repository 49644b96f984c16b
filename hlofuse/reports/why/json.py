"""`why --format json`; the schema is in docs/json.md."""

from collections.abc import Sequence
from typing import Any

from hlofuse.format.fields import fields
from hlofuse.reports.common.costs import detail_json
from hlofuse.reports.common.json import created_by_json, place_json
from hlofuse.reports.why import Decision, PairAnswer, Story

SCHEMA = "hlofuse.why/2"


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
            "holder": place_json(answer.holder) if answer.holder is not None else None,
            "kernels": [place_json(k) for k in answer.kernels],
            **fields(answer, "holds meant copies"),
            "as_producer": [_decision(d) for d in answer.as_producer],
            "as_consumer": [_decision(d) for d in answer.as_consumer],
            "made_by": [created_by_json(m) for m in answer.created_by],
            "rewrites": [_decision(d) for d in answer.rewrites],
            **_before_fusion(answer),
        }
    return {
        "schema": SCHEMA,
        "about": "pair",
        "producer": place_json(answer.producer),
        "consumer": place_json(answer.consumer),
        "inside": [{"name": name, "holder": holder} for name, holder in answer.inside],
        **fields(answer, "swapped outcome said_of=refused_user"),
        "settled_by": _decision(answer.settled_by) if answer.settled_by is not None else None,
        "decisions": [_decision(d) for d in answer.decisions],
        "shared_kernels": [place_json(k) for k in answer.shared],
        "producer_kernels": [place_json(k) for k in answer.producer_kernels],
        "consumer_kernels": [place_json(k) for k in answer.consumer_kernels],
        "bytes_between": answer.bytes_between,
        "path": list(answer.path),
        "made_by": [created_by_json(m) for m in answer.created_by],
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
        out |= {"producer": d.producer, "consumer": d.consumer}
    if d.event == "fuse":
        out |= fields(d, "fusion created duplicated")
    return out
