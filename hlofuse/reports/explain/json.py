"""`explain --format json`; the schema is in docs/json.md."""

from msgspec import to_builtins

from hlofuse.format.fields import fields
from hlofuse.format.paths import layer_of
from hlofuse.ir.record import Json
from hlofuse.reports.common.costs import kernel_json, step_json
from hlofuse.reports.common.json import created_by_json, launch_json, place_json, refusal_json, totals_json
from .model import BlockingRule, Explanation, FusedGroup, PassStory, Selection


def explanation_json(e: Explanation) -> Json:
    """The explanation as JSON values, complete: limits are for people."""
    return {
        "schema": "hlofuse.explain/3",
        **fields(e, "module file=filename target device release what_if ties"),
        **fields(e, "record", to_builtins),
        "totals": totals_json(e.after, e.counted),
        **fields(e, "kernels", launch_json),
        **fields(e, "before after", totals_json),
        **fields(e, "passes before_fusion=earlier after_fusion=later", _pass),
        "dearest": [
            {
                "first": place_json(k.place),
                "layer": layer_of(k.place.op_name),
                **fields(k, "us~ measured_us~ floor=is_floor count turns=iterations"),
                "kernel": kernel_json(k.kernel),
            }
            for k in e.hot_kernels
            if k.us
        ],
        **fields(e, "loops", to_builtins),
        **fields(e, "obstacles=blocking_rules", _blocking_rule),
        **fields(e, "selected", _selection),
        "rules": {code: fields(r, "code title message advice why flag") for code, r in e.rules.items()},
    }


def _selection(s: Selection) -> Json:
    return {
        "name": s.name,
        "kernels": [
            {
                **fields(k, "name=kernel.place.label input_name=kernel.input_name operations"),
                "kernel": kernel_json(k.time),
                **fields(k, "made_by=created_by", created_by_json),
            }
            for k in s.kernels
        ],
    }


def _pass(p: PassStory) -> Json:
    return {
        **fields(p, "name changed decisions"),
        **fields(p, "fused", _group),
        "rewritten": [
            {**fields(r.event, "step from=removed to=added rule reason"), "source": r.source}
            for r in p.rewrites
        ],
        **fields(p, "refused", refusal_json),
    }


def _group(g: FusedGroup) -> Json:
    return {
        "fusion": place_json(g.fusion),
        **fields(g, "computation bytes_saved us_saved~"),
        "kernel": kernel_json(g.kernel),
        "holds": list(g.holds),
        "steps": [
            {
                "step": s.event.step,
                "producer": place_json(s.producer),
                **fields(s.event, "consumer fusion created duplicated kind rule reason figures"),
                "cost": step_json(s.cost),
                **fields(s, "us_saved~ tied_with"),
            }
            for s in g.steps
        ],
    }


def _blocking_rule(o: BlockingRule) -> Json:
    return {
        **fields(o, "rule=rule.code title=rule.title advice=rule.advice edges bytes_between us_at_stake~"),
        "pairs": [[r.producer.name, r.consumer] for r in o.refusals],
    }
