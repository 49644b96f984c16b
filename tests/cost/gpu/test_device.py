"""Devices: packaged ones, one's own, and single numbers changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.cost.gpu import device as devices
from hlofuse.cost.gpu.device import DeviceDescription, device_from_text_proto, device_names, load_device
from hlofuse.cost.gpu.op_costs import op_profile
from hlofuse.ir import HlofuseError
from hlofuse.releases import AROUND_FUSION as RELEASE

PROTO = """
# a comment
gpu_device_info {
  threads_per_warp: 32
  shared_memory_per_block: 49152
  threads_per_core_limit: 1536
  core_count: 20
  fpus_per_core: 128
  memory_bandwidth: 448000000000
  l2_cache_size: 4194304
  clock_rate_ghz: 1.7
  cuda_compute_capability { major: 7 minor: 5 }
  scalar_unit_description { rate_infos { key: 4 value { clock_rate_ghz: 9.9 } } rate_infos { key: 8 } }
  compile_time_toolkit_version: "12.8.0"
}
platform_name: "CUDA"
device_description_str: "A card"
"""


@pytest.mark.parametrize("name", device_names())
def test_packaged_devices_are_whole(name: str) -> None:
    device = load_device(name)
    assert device.core_count > 0
    assert device.memory_bandwidth > 10**11
    assert device.l2_cache_size > 0
    assert (device.compute_capability != (0, 0)) == (device.platform == "CUDA")
    assert op_profile(device, RELEASE)


def test_xla_target_config_text(tmp_path: Path) -> None:
    file = tmp_path / "card.txtpb"
    file.write_text(PROTO)
    device = load_device(str(file))
    assert device == device_from_text_proto(PROTO)
    assert (device.name, device.compute_capability, device.toolkit_version) == ("A card", (7, 5), (12, 8, 0))
    assert device.clock_rate_ghz == pytest.approx(1.7)
    assert device.op_profile == "sm_75"


def test_overrides() -> None:
    device = load_device("h100_sxm").with_overrides({"memory_bandwidth": "2e12", "compute_capability": "8.6"})
    assert (device.memory_bandwidth, device.compute_capability) == (2 * 10**12, (8, 6))
    with pytest.raises(HlofuseError, match="a device has no 'bandwidth'"):
        device.with_overrides({"bandwidth": "1"})
    with pytest.raises(HlofuseError, match="core_count: 'many' is not a number"):
        device.with_overrides({"core_count": "many"})


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ("launch_overhead_us=nan", "expected a number of 0 or more, found nan"),
        ("launch_overhead_us=inf", "expected a number of 0 or more"),
        ("l2_cache_size=-1", "expected a number of 0 or more"),
        ("clock_rate_ghz=0", "expected a number of more than 0"),
        ("block_dim_limit_x=0", "expected a number of more than 0"),
        ("memory_compute_parallelism=1.5", "expected a fraction from 0 to 1"),
        ("core_count=1.5", "expected an integer, found 1.5"),
    ],
)
def test_no_device_has_such_numbers(tmp_path: Path, number: str, message: str) -> None:
    name, _, value = number.partition("=")
    with pytest.raises(HlofuseError, match=f"^{name}: {message}"):
        load_device("h100_sxm").with_overrides({name: value})
    file = tmp_path / "card.toml"
    file.write_text(f"{name} = {value}")
    with pytest.raises(HlofuseError, match=f"card.toml: not a device file: {name}: {message}"):
        load_device(str(file))


def test_unknown_devices_and_broken_files(tmp_path: Path) -> None:
    with pytest.raises(HlofuseError, match="expected one of a100_pcie_80"):
        load_device("h1000")
    empty = tmp_path / "empty.toml"
    empty.write_text('name = "x"')
    with pytest.raises(HlofuseError, match="missing"):
        load_device(str(empty))
    broken = tmp_path / "broken.txtpb"
    broken.write_text("gpu_device_info {")
    with pytest.raises(HlofuseError, match="inside a message"):
        load_device(str(broken))
    broken.write_text("gpu_device_info { rocm_compute_capability: 3 }")
    with pytest.raises(HlofuseError, match="rocm_compute_capability must be a message"):
        load_device(str(broken))
    broken.write_text("matrix_unit_description { rate_infos { key { } } }")
    with pytest.raises(HlofuseError, match="missing"):
        load_device(str(broken))
    broken.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(HlofuseError, match="not a device file"):
        load_device(str(broken))


def test_devices_without_a_table_use_that_of_sm_86() -> None:
    rtx, a6000 = load_device("rtx6000pro"), load_device("a6000")
    assert op_profile(rtx, RELEASE) is op_profile(a6000, RELEASE)
    assert op_profile(load_device("b200"), RELEASE) != op_profile(rtx, RELEASE)


def test_amd_devices_differ_by_generation() -> None:
    found = {}
    for name in ("mi200", "mi300x", "mi350", "h100_sxm"):
        d = load_device(name)
        found[name] = d.l1_cache_size_per_core, d.dram_to_l2_transaction_bytes, d.bytes_per_clock_and_core
    assert found == {
        "mi200": (16384, 64, 32),
        "mi300x": (32768, 128, 16),
        "mi350": (32768, 128, 16),
        "h100_sxm": (2048, 64, 32),
    }
    assert load_device("mi200").threads_per_warp == 64
    assert not load_device("mi350").is_blackwell


def test_repeated_fields_become_lists() -> None:
    assert devices.parse_text_proto("a: 1 a: -2 b { c: true d: KIND e: false } b {}") == {
        "a": [1, -2],
        "b": [{"c": True, "d": "KIND", "e": False}, {}],
    }
    for text, message in (
        ("a: 1 }", "extra closing"),
        ("a: 1\n\n?", "line 3: unexpected '\\?'"),
        ("{", "no name"),
    ):
        with pytest.raises(devices.TextProtoError, match=message):
            devices.parse_text_proto(text)


def test_blackwell_is_compute_capability_ten() -> None:
    assert isinstance(load_device("b300"), DeviceDescription)
    assert load_device("b300").is_blackwell
    assert not load_device("rtx6000pro").is_blackwell
