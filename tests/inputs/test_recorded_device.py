"""The device of a dump where nobody names one: by what lies beside it, or by a baseline."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hlofuse.inputs.companions import Companions
from ..running import Run

NOTE = "note: device h100_sxm: from XLA's fusion log next to the module\n"


@pytest.fixture
def folder(samples: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(samples / "gpu" / "softmax", tmp_path / "softmax"))


def test_xla_s_record_tells_and_a_note_says_so(hlofuse: Run, folder: Path) -> None:
    done = hlofuse("explain", folder)
    assert (done.status, done.err) == (0, NOTE)
    assert done.out == hlofuse("explain", folder, "--device", "h100_sxm").out
    assert hlofuse("explain", folder / "after.hlo").err == NOTE
    assert hlofuse("verify", folder / "before.hlo", folder / "after.hlo").status == 0
    assert hlofuse("stats", folder).err == ""  # the same on every device


def test_a_record_without_steps_tells_as_well(folder: Path) -> None:
    """Where nothing can be fused the device is all that is in it."""
    record = folder / "priority_fusion.txtpb"
    text = record.read_text()
    record.write_text(text[text.index("gpu_device_info {") :])
    found = Companions(folder / "before.hlo").recorded_device
    assert found is not None
    assert found.device.name == "h100_sxm"


def test_of_numbers_that_no_device_has_it_is_asked(hlofuse: Run, folder: Path) -> None:
    record = folder / "priority_fusion.txtpb"
    text = record.read_text()
    before = str(folder / "before.hlo")
    changed = text.replace("  core_count: 132", "  core_count: 131")
    assert changed != text
    record.write_text(changed)
    assert Companions(before).recorded_device is None
    result = hlofuse("explain", folder)
    assert (result.status, "needs --device" in result.err) == (2, True)
    for torn in (
        "",
        "\ngpu_device_info {",
        text[: text.index("gpu_device_info") + 40],
        "\ngpu_device_info {}",
        "\ngpu_device_info { cuda_compute_capability: 2 }",
        "\ngpu_device_info { matrix_unit_description { rate_infos: 4 } }",
    ):
        record.write_text(torn)
        assert Companions(before).recorded_device is None


def test_what_xla_says_of_the_device_comes_first(folder: Path) -> None:
    config = folder / "gpu_target_config.pbtxt"
    record = (folder / "priority_fusion.txtpb").read_text()
    info = record[record.index("\ngpu_device_info {") :].replace("  core_count: 132", "  core_count: 131")
    config.write_text(info)
    found = Companions(folder / "before.hlo").recorded_device
    assert found is not None
    assert (found.device.core_count, found.note) == (131, "")


def test_a_check_takes_the_device_of_its_baseline(hlofuse: Run, deviceless: Path) -> None:
    baseline = deviceless.with_name("fusion.toml")
    text = "check", deviceless, "--baseline", baseline
    assert hlofuse(*text, "--device", "v100", "--update").status == 0
    done = hlofuse(*text)
    assert (done.status, done.err) == (0, "note: device v100: the baseline records it\n")
    baseline.write_text(baseline.read_text().replace('"v100"', '"ours"'))  # not one that ships
    result = hlofuse(*text)
    assert (result.status, "needs --device" in result.err) == (2, True)


PLAIN = """HloModule plain

ENTRY e {
  p = f32[64]{0} parameter(0)
  q = f32[64]{0} exponential(p)
  ROOT r = f32[64]{0} negate(q)
}
"""


def test_and_its_target_where_the_module_tells_none(hlofuse: Run, tmp_path: Path) -> None:
    module, baseline = tmp_path / "m.hlo", tmp_path / "fusion.toml"
    module.write_text(PLAIN)
    text = "check", module, "--baseline", baseline
    assert hlofuse(*text, "--device", "v100", "--update").status == 0
    assert hlofuse(*text).err == "note: device v100: the baseline records it\n"
    assert "use one baseline per target" in hlofuse(*text, "--target", "cpu").err


def test_of_many_modules_it_is_said_once(hlofuse: Run, samples: Path) -> None:
    assert hlofuse("check", samples / "gpu", "--max-kernels", 99).err == NOTE
