"""Have XLA count the modules of `cost_modules.py`; prints the table that the test compares with.

Needs jax and jaxlib 0.11.1 (Python 3.12); what it prints belongs into `xla_costs.json`.
"""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(Path(__file__).parent))

import jax
from cost_modules import MODULES
from jaxlib import _hlo, _jax


def main() -> None:
    client = jax.devices()[0].client
    table = {}
    for name, text in MODULES.items():
        found = dict(_jax.hlo_module_cost_analysis(client, _hlo.hlo_module_from_text(text)))
        table[name] = {k: found.get(k, 0.0) for k in ("flops", "transcendentals", "bytes accessed")}
    print(json.dumps(table, indent=1))


main()
