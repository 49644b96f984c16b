"""A verdict as JSON values; the fields are in docs/json.md."""

from collections.abc import Sequence

from hlofuse.account.bound import ProgramFloor
from hlofuse.format import fields, us_json
from hlofuse.ir import Json
from hlofuse.reports.common.edits import edit_of
from hlofuse.reports.common.functions import functions_json
from hlofuse.reports.common.profile import profile_json
from hlofuse.reports.whatif.model import Trial
from .changes import Change
from .collectives import collective_json
from .model import MEASURED, Suggestion, Verdict


def verdict_json(v: Verdict) -> Json:
    """`verdict` and `suggestions`, which reports hold at their top level."""
    both = v.together
    best = {"what": v.best_of, **_trial(v.best)} if v.best is not None else None
    return {
        "verdict": {
            "shares": [
                fields(
                    s,
                    "kind launches=count in_command_buffers time_us=us~ host_wait_us~ measured_us~ "
                    "bytes=bytes_accessed is_floor",
                )
                for s in v.shares
            ],
            "floor": _floor(v.program),
            "headroom": _headroom(v),
            "scaled_us_left": us_json(v.scaled_us_left),
            "best": best,
            **fields(v, "replays is_ranked"),
            **(fields(v, "compiled not_proved") if v.compiled or v.not_proved else {}),
        },
        **profile_json(v.measured),
        **fields(v, "suggestions untried rounding", _suggestion),
        "functions": functions_json(v.functions),
        "together": {"suggestions": list(both[0]), "gain": _gain(both[1])} if both is not None else None,
        **fields(v, "collectives", collective_json),
        "compile_time": list(v.compile_time),
        **(
            fields(
                v.tiles, "padding=arrays layout_copies=copies precise_products=products random_bits=random"
            )
            if v.tiles is not None
            else {}
        ),
    }


def _floor(p: ProgramFloor | None) -> Json:
    if p is None:
        return {"time_us": None, "bytes": None, "keeps": [], "moved_once_us": None}
    us = p.us if p.us is not None else p.moved_us
    return {"time_us": us_json(us), **fields(p, "bytes=moved_bytes keeps moved_once_us=moved_us~")}


def _headroom(v: Verdict) -> Json:
    """The saving that a user's change has, and the most that any choice of fusions may have."""
    found = v.found.trial if v.found is not None else None
    us = max(v.totals.us - v.floor.us, 0.0) if v.totals.us is not None and v.floor.us is not None else None
    return {
        "found_us": us_json(found.us_saved) if found is not None else None,
        "found_bytes": found.bytes_saved if found is not None else None,
        "most_us": us_json(us),
        "most_bytes": max(v.totals.cost.bytes_accessed - v.floor.bytes_accessed, 0),
    }


def _suggestion(s: Suggestion) -> Json:
    return {
        **fields(s, "kind text rule?"),
        "source": s.sources[0] if s.sources else None,
        **fields(s, "sources places is_forward_alone recipe? flag?"),
        "operation": None,
        "edit": edit_of(s.recipe, s.text, s.sources),
        "proof": [word for word in ("replayed", "compiled", MEASURED, "values") if word in s.trial.how],
        "gain": _gain(s.trial),
        **fields(s, "touched?"),
        "tried": _trial(s.trial),
    }


def _gain(t: Trial) -> Json:
    """The saving of a change; `time_kind` is `scaled` where the estimate was scaled to measured time."""
    is_scaled = t.scaled_us_saved is not None
    us = t.scaled_us_saved if is_scaled else t.us_saved
    kind = t.how if t.how == MEASURED else "scaled" if is_scaled else "estimated"
    return {
        "time_us": us_json(us),
        "time_kind": None if us is None else kind,
        **({"time_error": f"not known: {t.roughly_timed} by 1 measurement"} if t.roughly_timed else {}),
        **fields(t, "temporary_bytes=temporary_saved kernels=kernels_saved launches=launches_saved"),
    }


def _trial(t: Trial) -> Json:
    totals: Json = dict.fromkeys(("kernels", "launches", "bytes", "time_us"))
    if t.totals is not None:
        totals = fields(t.totals, "kernels launches bytes=cost.bytes_accessed time_us=us~")
    return {
        "how": t.how,
        **totals,
        **fields(t, "us_saved~ scaled_us_saved~ kernels_saved launches_saved bytes_saved"),
        **fields(t, "has_fewer_library_calls has_more_code"),
    }


def changes_json(rows: Sequence[Change]) -> list[Json]:
    """Rows that were asked for."""
    return [{"label": c.label, "title": c.title, "tried": _trial(c.trial)} for c in rows]
