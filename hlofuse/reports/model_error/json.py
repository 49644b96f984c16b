"""`model-error --format json`; the schema is in docs/profiles.md."""

from typing import Any

from hlofuse.format.fields import fields
from hlofuse.reports.common.json import measured_json, place_json
from hlofuse.reports.common.profile import profile_json
from hlofuse.reports.model_error.model import ModelError

SCHEMA = "hlofuse.model-error/3"


def model_error_json(e: ModelError) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "module": e.module,
        "device": e.device,
        "profile": profile_json(e.measured),
        "bandwidth": e.bandwidth,
        "modelled": {
            "kernels": len(e.modelled),
            "close": sum(k.is_close for k in e.modelled),
        },
        "kernels": [
            {
                **place_json(k.place),
                **fields(k, "runs measured_run_us=measured_us~ estimate_us~ floor=is_floor ratio~ off_us~"),
                **({"cycles": k.cycles} if k.cycles is not None else {}),
                **measured_json(k.measured),
            }
            for k in e.kernels
        ],
    }
