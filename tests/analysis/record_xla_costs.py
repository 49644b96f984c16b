"""Have XLA count the modules of `cost_modules.py`; prints the table that the test compares with.

`python -m tests.analysis.record_xla_costs` needs jax and jaxlib 0.11.1; what it prints belongs into
`xla_costs.json`.
"""

import json
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
from jaxlib import _hlo, _jax

from .cost_modules import MODULES


def main() -> None:
    client = jax.devices()[0].client
    table = {}
    for name, text in MODULES.items():
        found = dict(_jax.hlo_module_cost_analysis(client, _hlo.hlo_module_from_text(text)))
        table[name] = {k: found.get(k, 0.0) for k in ("flops", "transcendentals", "bytes accessed")}
    print(json.dumps(table, indent=1))


main()
