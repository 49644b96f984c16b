"""The target configuration written for a device says what the device's file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.capture.capturing import target_config_of, target_config_text
from hlofuse.cost.gpu.device import device_from_text_proto, device_names, load_device
from hlofuse.inputs.companions import device_in_dump
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.record import replace

CUDA = [name for name in device_names() if load_device(name).platform == "CUDA"]


@pytest.mark.parametrize("name", CUDA)
def test_read_back_it_is_the_same_device(name: str) -> None:
    device = load_device(name)
    back = device_from_text_proto(target_config_text(device))
    # XLA's text always names a toolkit; a device's file may leave it out.
    assert replace(back, toolkit_version=device.toolkit_version, origin=device.origin) == device


def test_a_dump_of_a_known_device_names_it(tmp_path: Path) -> None:
    config = tmp_path / "gpu_target_config.pbtxt"
    config.write_text(target_config_text(load_device("a100_sxm_40")))
    assert device_in_dump(config).name == "a100_sxm_40"
    config.write_text(target_config_text(replace(load_device("a100_sxm_40"), core_count=107)))
    assert device_in_dump(config).name == "NVIDIA A100-SXM4-40GB of the dump"


def test_other_platforms_are_declined() -> None:
    with pytest.raises(HlofuseError, match="device mi350 is for ROCM, but hlofuse capture compiles for CUDA"):
        target_config_of("mi350")
