"""Changes that need less memory: the bytes after each are those of XLA for the changed program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ..fixtures import companion_texts
from ..running import Run

TEXTS = companion_texts(__file__)
UPDATE, BARRIER = (Path(__file__).with_name(f"{name}.hlo").read_text() for name in ("update", "barrier"))
"""XLA's temporaries: 196 bytes; 16,580 without the barrier."""
REPEATED = UPDATE.replace("  wave = f32[4096]{0} opt-barrier(first)\n", "").replace("first =", "wave =")
MOMENTUM = TEXTS["momentum"]
"""12.3 kB by XLA where both are donated, else 20.5 kB."""
TABLE = TEXTS["table"]


def memory(hlofuse: Run, tmp_path: Path, text: str, *options: str) -> tuple[dict[str, Any], str]:
    path = tmp_path / "m.hlo"
    path.write_text(text, encoding="utf-8")
    given = (path, "--stage", "fusion-input", "--xla", "0.11.1", *options)
    return json.loads(hlofuse("memory", *given, "--format", "json").out), hlofuse("memory", *given).out


def test_an_operation_that_is_computed_again_keeps_a_donated_argument(hlofuse: Run, tmp_path: Path) -> None:
    found, out = memory(hlofuse, tmp_path, REPEATED, "--target", "cpu")
    assert found["memory"]["temporary"] == pytest.approx(16_580, abs=256)
    (change,) = (c for c in found["changes"] if "optimization_barrier" in c["text"])
    assert (change["temporary_bytes"], change["sources"]) == (pytest.approx(196, abs=64), ["own.py:4"])
    given = ("--stage", "fusion-input", "--xla", "0.11.1", "--target", "cpu")
    assert "barrier around what XLA computes several" in hlofuse("explain", tmp_path / "m.hlo", *given).out
    largest = found["alive"][0]
    assert "not in donated state: still read by " in largest["reason"]
    assert largest["reason"].endswith(" at own.py:7")
    assert largest["reason"].split()[-1] in out
    guarded, _ = memory(hlofuse, tmp_path, UPDATE, "--target", "cpu")
    assert guarded["memory"]["temporary"] == pytest.approx(196, abs=64)
    differentiated, _ = memory(hlofuse, tmp_path, REPEATED.replace("/cos", "/jvp()/cos"), "--target", "cpu")
    assert "optimization_barrier" not in json.dumps([guarded["changes"], differentiated["changes"]])
    assert not any(a["reason"] for a in guarded["alive"])


@pytest.mark.parametrize("most", [3_000, 0])
def test_arguments_with_results_of_their_shapes_can_be_donated(
    hlofuse: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """In a module above `TRIED_UP_TO` instructions, too."""
    monkeypatch.setattr("hlofuse.reports.memory.changes.TRIED_UP_TO", most)
    found, out = memory(hlofuse, tmp_path, MOMENTUM, "--device", "h100_sxm")
    (change,) = found["changes"]
    assert change["text"] == "Donate state (donate_argnums) if the caller no longer needs it"
    assert (found["memory"]["total"], change["memory_bytes"]) == (20_496, 12_304)
    assert "20.5 kB → 12.3 kB in all" in out
    header = "momentum, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }"
    given, _ = memory(hlofuse, tmp_path, MOMENTUM.replace("momentum", header, 1), "--device", "h100_sxm")
    assert (given["memory"]["total"], given["changes"]) == (12_304, [])
    of_gradient = MOMENTUM.replace("(w, faster)", '(w, faster), metadata={op_name="transpose(jvp())/sub"}')
    found, _ = memory(hlofuse, tmp_path, of_gradient, "--device", "h100_sxm")
    assert [c["memory_bytes"] for c in found["changes"]] == [pytest.approx(16_400, abs=16)]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("old.g old.m old.w", "Donate old (donate_argnums) if the caller no longer needs it"),
        ("g state.m state.w", "Donate state (donate_argnums) if the caller no longer needs it"),
        ("g m w", "Donate w, m (donate_argnums) if the caller no longer needs them; g would do for one"),
        ("m g w", "Donate w, g (donate_argnums) if the caller no longer needs them; m would do for one"),
    ],
)
def test_the_argument_that_fits_the_most_results_is_donated(
    hlofuse: Run, tmp_path: Path, names: str, text: str
) -> None:
    """A module does not say which argument a result replaces, as of weights, a momentum and gradients."""
    module = MOMENTUM
    for old, new in zip(("gradient", "state['speed']", "state['weights']"), names.split(), strict=True):
        module = module.replace(f'"{old}"', f'"{new}"')
    found, _ = memory(hlofuse, tmp_path, module, "--device", "h100_sxm")
    (change,) = found["changes"]
    assert change["text"].startswith(text)
    assert change["memory_bytes"] == 12_304


def test_on_a_cpu_what_follows_a_barrier_runs_after_all_before_it(hlofuse: Run, tmp_path: Path) -> None:
    """XLA's temporaries. Without the barrier both sorts are alive at once."""
    without = BARRIER.replace("sine(y)", "sine(x)")
    for text, bytes in ((BARRIER, 16_384), (without, 32_768)):
        found, _ = memory(hlofuse, tmp_path, text, "--target", "cpu")
        assert found["memory"]["temporary"] == bytes


def test_an_argument_that_is_only_put_in_another_order(hlofuse: Run, tmp_path: Path) -> None:
    found, _ = memory(hlofuse, tmp_path, TABLE, "--device", "h100_sxm")
    assert found["alive"][0]["reason"] == "a copy of table in another order"
    (change,) = found["changes"]
    assert change["text"] == "Keep table as it is read: pass it transposed by (1, 2, 0)"
    assert (found["memory"]["temporary"], change["temporary_bytes"]) == (8 * 256 * 256 * 4, 0)
    twice = TABLE.replace("custom-call(turned, x)", "custom-call(turned, x, t)")
    assert not memory(hlofuse, tmp_path, twice, "--device", "h100_sxm")[0]["changes"]


def test_arrays_of_products_that_need_not_be_alive_at_once_on_a_cpu(hlofuse: Run, tmp_path: Path) -> None:
    """XLA's temporaries: 65,536 bytes, and 16,384 with the flag."""
    lines = "".join(
        f"""  k{k} = f32[] constant({k})
  b{k} = f32[64,64]{{1,0}} broadcast(k{k}), dimensions={{}}
  a{k} = f32[64,64]{{1,0}} add(x, b{k})
  d{k} = f32[64,3]{{1,0}} dot(a{k}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
"""
        for k in range(1, 5)
    )
    text = f"""HloModule products

ENTRY main {{
  x = f32[64,64]{{1,0}} parameter(0)
  w = f32[64,3]{{1,0}} parameter(1)
{lines}  ROOT t = (f32[64,3], f32[64,3], f32[64,3], f32[64,3]) tuple(d1, d2, d3, d4)
}}
"""
    found, _ = memory(hlofuse, tmp_path, text, "--target", "cpu")
    assert found["memory"]["temporary"] == 65_536
    change = found["changes"][0]
    assert change["text"] == "XLA_FLAGS=--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"
    assert change["temporary_bytes"] == 16_384
    earlier, _ = memory(hlofuse, tmp_path, text, "--target", "cpu", "--xla", "0.8.3")
    assert not any("scheduler" in c["text"] for c in earlier["changes"])
