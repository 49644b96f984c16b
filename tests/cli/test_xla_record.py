"""XLA's own record of PriorityFusion, lying beside a module."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from ..running import Run


def record_of(hlofuse: Run, folder: Path, *text: str) -> Any:
    result = hlofuse("explain", folder, "--target", "gpu", "--format", "json", *text)
    assert result.status == 0, result.err
    return json.loads(result.out)["record"]


def test_it_is_followed_where_it_is_about_this_device(hlofuse: Run, samples: Path) -> None:
    folder = samples / "gpu" / "softmax"
    assert record_of(hlofuse, folder, "--device", "h100_sxm")["disagreements"] == []
    assert record_of(hlofuse, folder, "--device", "v100") is None
    assert hlofuse("explain", folder, "--device", "h100_sxm").err == ""
    assert "is for another device; ignored" in hlofuse("explain", folder, "--device", "v100").err
    reported = hlofuse("verify", folder, "--device", "v100", "--target", "gpu")
    assert "XLA's fusion log next to it is for another device." in reported.out
    reported = hlofuse("verify", folder, "--device", "h100_sxm", "--target", "gpu")
    assert (reported.status, "another device" in reported.out) == (0, False)
    # What may be asked of many modules keeps quiet.
    checked = hlofuse("check", folder, "--device", "v100", "--max-kernels", 9)
    assert (checked.status, checked.err) == (0, "")


def test_an_empty_one_says_that_nothing_was_fused(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    """XLA leaves it so where the module has nothing to weigh; only who needs it is told."""
    shutil.copytree(samples / "gpu" / "softmax", tmp_path, dirs_exist_ok=True)
    (record,) = tmp_path.glob("priority_fusion.txtpb*")
    record.write_text("gpu_device_info {\n  core_count: 132\n}\n")
    assert record_of(hlofuse, tmp_path, "--device", "h100_sxm") is None
    replayed = hlofuse(
        "replay", tmp_path, "--target", "gpu", "--device", "h100_sxm", "-o", tmp_path / "o.hlo"
    )
    assert replayed.status == 0, replayed.err
    requested = hlofuse("explain", tmp_path, "--target", "gpu", "--device", "h100_sxm", "--xla-trace", record)
    assert requested.status == 2
    assert "found no fusion steps" in requested.err


def test_one_of_another_module_is_doubted(hlofuse: Run, samples: Path) -> None:
    gpu, h100 = samples / "gpu", ("--device", "h100_sxm")
    (record,) = (gpu / "gpt2_block").glob("priority_fusion.txtpb*")
    requested = hlofuse("explain", gpu / "softmax", *h100, "--xla-trace", record, columns=160)
    assert "decisions match; it may be for another module or device" in requested.out
    assert "another module" not in hlofuse("explain", gpu / "softmax", *h100).out


def test_one_that_is_cut_short_is_said_to_be(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    folder = samples / "gpu" / "softmax"
    whole = next(folder.glob("priority_fusion.txtpb")).read_text()
    (tmp_path / "record.txtpb").write_text(whole[: whole.rindex("fusion_steps")])
    text = ("--device", "h100_sxm", "--xla-trace", tmp_path / "record.txtpb")
    requested = hlofuse("explain", folder, *text, columns=160)
    assert "is shorter than the replay: all its 5 decisions match" in requested.out


def test_a_target_without_the_pass_takes_no_record(hlofuse: Run, samples: Path) -> None:
    module = samples / "cpu" / "softmax" / "before.hlo"
    requested = hlofuse("explain", module, "--xla-trace", "none.txt")
    assert requested.status == 2
    assert "--xla-trace needs target gpu" in requested.err
    assert hlofuse("explain", module, "--xla-trace", "none").status == 0
