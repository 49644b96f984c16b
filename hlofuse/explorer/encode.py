"""The page's data as compact JSON: a list for each field, strings by number.

Ten thousand decisions say much the same over and over. Lists of one field deflate to little, and reading
them takes a browser no time; `page/data.js` is the other end of this.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from hlofuse.explorer.encode_passes import passes_json
from hlofuse.explorer.model import Page, Run
from hlofuse.explorer.strings import Strings, differences

SCHEMA = 2
KINDS = ("fuse", "ineligible", "priority", "rewrite")


def encoded(page: Page) -> str:
    """Base64 of the deflated JSON: nothing in it can end the element it stands in."""
    text = json.dumps(page_json(page), separators=(",", ":"), ensure_ascii=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def page_json(page: Page) -> dict[str, Any]:
    """JSON values; numbers for strings point into `strings`."""
    s = Strings()
    runs = [_run(r, s) for r in page.runs]
    rules = [[s(r.code), s(r.title), [[s(h), s(t)] for h, t in r.sections]] for r in page.rules]
    passes = passes_json(page.passes, s) if page.passes is not None else None
    return {
        "schema": SCHEMA,
        "title": page.title,
        "kinds": KINDS,
        "runs": runs,
        "rules": rules,
        "passes": passes,
        "strings": s.all(),
    }


def _run(r: Run, s: Strings) -> dict[str, Any]:
    o, d, k, h = r.operations, r.decisions, r.kernels, r.held
    return {
        "label": r.label,
        "headline": r.headline,
        "result": r.result,
        "notes": r.notes,
        "target": r.target,
        "device": r.device,
        "computations": [s(c) for c in r.computations],
        "passes": [s(p) for p in r.passes],
        "names": [s(n) for n in r.names],
        "boxes": r.boxes,
        "ends_as": differences(r.ends_as),
        "kernels_before": r.kernels_before,
        "operations": {
            "opcode": [s(x.opcode) for x in o],
            "shape": [s(x.shape) for x in o],
            "computation": [x.computation for x in o],
            # Near ones mostly, so the distance is the smaller number.
            "operands": [[n - i for i in x.operands] for n, x in enumerate(o)],
            "calls": {n: x.calls for n, x in enumerate(o) if x.calls},
            "bytes": [x.bytes_out for x in o],
            "launched": [int(x.launched) for x in o],
            "source": [s(x.source) for x in o],
            "op_name": [s(x.op_name) for x in o],
            "layer": [s(x.layer) for x in o],
            "us": [_time(x.us) for x in o],
        },
        "decisions": {
            "kind": [KINDS.index(x.kind) for x in d],
            "pass": [x.pass_index for x in d],
            "step": [x.step for x in d],
            "computation": [s(x.computation) for x in d],
            "producer": [x.producer for x in d],
            "consumer": [x.consumer for x in d],
            "producer_name": [s(x.names[0]) for x in d],
            "consumer_name": [s(x.names[1]) for x in d],
            "result_name": [s(x.names[2]) for x in d],
            "others": [x.others for x in d],
            "rule": [s(x.rule) for x in d],
            "reason": [s(x.reason) for x in d],
            "figures": [s(x.figures) for x in d],
            "us_fused": [_time(x.us_fused) for x in d],
            "us_unfused": [_time(x.us_unfused) for x in d],
            "us_saved": [_time(x.us_saved) for x in d],
            "why": [s(x.why) for x in d],
            "duplicated": [int(x.duplicated) for x in d],
            "ops": [[n for op in x.ops for n in op] for x in d],
            "kernels": differences(x.kernels for x in d),
        },
        "regions": [
            [g.computation, [[b, differences(inside)] for b, inside in g.kernels]] for g in r.regions
        ],
        "kernels": {
            "name": [s(x.name) for x in k],
            "box": [x.box for x in k],
            "kind": [s(x.kind) for x in k],
            "bytes": [x.bytes_accessed for x in k],
            "flops": [x.flops for x in k],
            "us": [_time(x.us) for x in k],
            "us_memory": [_time(x.us_memory) for x in k],
            "us_compute": [_time(x.us_compute) for x in k],
            "emitter": [s(x.emitter) for x in k],
            "source": [s(x.source) for x in k],
            "layer": [s(x.layer) for x in k],
        },
        "held": {
            "decision": [x.decision for x in h],
            "producer": [s(x.producer) for x in h],
            "consumer": [s(x.consumer) for x in h],
            "rule": [s(x.rule) for x in h],
            "us": [_time(x.us_at_stake) for x in h],
            "bytes": [x.bytes_between for x in h],
            "source": [s(x.source) for x in h],
        },
    }


def _time(us: float | None) -> float | None:
    """No finer than is ever shown."""
    if us is None or us != us or abs(us) == float("inf"):
        return None
    return float(f"{us:.5g}")
