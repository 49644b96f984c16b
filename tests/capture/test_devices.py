"""The description of a GPU is given with the fields that the compiling XLA knows."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hlofuse.capture.ahead_of_time import devices
from hlofuse.capture.ahead_of_time.devices import Devices, add_flags, devices_of
from hlofuse.capture.ahead_of_time.programs import MISSING, Problem
from hlofuse.capture.capturing import FLAGS_OF_RELEASES, target_config_text
from hlofuse.capture.model import settled_destination
from hlofuse.cost.gpu.device import device_from_text_proto, load_device

H100 = target_config_text(load_device("h100_sxm"))
AS_IN_0_4_35 = (
    "max_blocks_per_multiprocessor",
    "thread_dim_limit_x",
    "driver_version",
    "feature_extension",
    "matrix_unit_description",
    "runtime_version",
)
"""Some of the fields that came later."""
REFUSAL = "E1125 1 text_format.cc:378] Error parsing text-format stream_executor.GpuTargetConfigProto:"


def parser(unknown: tuple[str, ...], topologies: list[tuple[str, str]]) -> Callable[..., Any]:
    """Refuses the first field of `unknown` as XLA does: by line, on standard error and in no exception."""

    def get_topology_desc(platform: str, target_config: str, topology: str) -> Any:
        for number, line in enumerate(target_config.splitlines(), 1):
            for name in re.findall(r"(\w+)(?=:| \{)", line):
                if name in unknown:
                    text = f'{REFUSAL} {number}:1: Message type "T" has no field named "{name}".\n'
                    os.write(2, text.encode())
                    raise RuntimeError("FAILED_PRECONDITION: Failed to parse GpuTargetConfigProto")
            if "torn" in line:
                os.write(2, f"{REFUSAL} 1:1: torn.\n".encode())
                raise RuntimeError("FAILED_PRECONDITION")
        topologies.append((target_config, topology))
        count = int(topology.rpartition("x")[2])
        return SimpleNamespace(devices=[f"gpu{n}" for n in range(count)])

    return get_topology_desc


@pytest.fixture
def compile_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Devices, str, str]]:
    monkeypatch.setattr(devices, "version_of", lambda _: "0.8.3")

    def run(config: str, unknown: tuple[str, ...] = (), **request: Any) -> tuple[Devices, str, str]:
        topologies: list[tuple[str, str]] = []
        package = ModuleType("jax.experimental")
        package.topologies = SimpleNamespace(  # type: ignore[attr-defined]
            get_topology_desc=parser(unknown, topologies)
        )
        monkeypatch.setitem(sys.modules, "jax.experimental", package)
        file = tmp_path / "config.txtpb"
        file.write_text(config)
        found = devices_of({"target": "gpu", "target_config": str(file), "topology": None, **request})
        return found, *topologies[0]

    return run


def test_all_is_said_to_an_xla_that_knows_it(compile_for: Callable[..., tuple[Devices, str, str]]) -> None:
    found, config, topology = compile_for(H100)
    assert (found.all, found.unknown_fields) == (["gpu0"], [])
    assert (config, topology) == (H100, "1x1x1")


def test_what_it_does_not_know_is_left_out(compile_for: Callable[..., tuple[Devices, str, str]]) -> None:
    found, config, _ = compile_for(H100, AS_IN_0_4_35)
    # The version of the runtime stands twice: among the device's numbers and, in later releases, beside.
    assert sorted(found.unknown_fields) == sorted([*AS_IN_0_4_35, "runtime_version"])
    assert not any(name in config for name in AS_IN_0_4_35)
    read = device_from_text_proto(config)
    assert (read.core_count, read.compute_capability, read.matrix_units) == (132, (9, 0), ())
    assert config.count("{") == config.count("}")


def test_a_refusal_names_the_release_and_the_field(
    compile_for: Callable[..., tuple[Devices, str, str]],
) -> None:
    with pytest.raises(Problem, match=r"the XLA of jaxlib 0\.8\.3 rejects the device: .*1:1: torn"):
        compile_for("torn {\n}\n")
    several_in_a_line = "gpu_device_info { core_count: 3 clock: 2 }\n"
    with pytest.raises(Problem, match=r"jaxlib 0\.8\.3 rejects the device: .* no field named .clock"):
        compile_for(several_in_a_line, ("clock",))


def test_a_topology_of_more_hosts(compile_for: Callable[..., tuple[Devices, str, str]]) -> None:
    assert compile_for(H100, topology="1x2x8")[2] == "1x2x8"


@pytest.mark.parametrize(
    ("device", "topology", "mesh", "place"),
    [
        ("v5e", None, 4, "v5e:2x2"),
        ("v5e", None, 5, "v5e:2x4"),
        ("v5e", "v5e:4x4", 8, "v5e:4x4"),
        ("v4", None, 8, "v4:2x2x1"),  # two devices a chip
        ("v4", None, 16, "v4:2x2x2"),
    ],
)
def test_the_smallest_topology_of_a_tpu_grows_with_the_mesh(
    device: str, topology: str | None, mesh: int, place: str
) -> None:
    assert settled_destination(None, device, topology, ((None, mesh),)).place == place


def test_a_mesh_that_is_larger_than_the_topology(
    compile_for: Callable[..., tuple[Devices, str, str]],
) -> None:
    with pytest.raises(Problem, match="--mesh needs 4 devices, but there are 2 gpu devices"):
        compile_for(H100, topology="1x1x2", mesh=[[None, 4]])


def test_without_a_plugin_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def get_topology_desc(**_: Any) -> Any:
        raise NotImplementedError("topology not implemented for cuda")

    package = ModuleType("jax.experimental")
    package.topologies = SimpleNamespace(get_topology_desc=get_topology_desc)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jax.experimental", package)
    (tmp_path / "config.txtpb").write_text(H100)
    request = {"target": "gpu", "target_config": str(tmp_path / "config.txtpb"), "topology": None}
    with pytest.raises(Problem, match=r"gpu plugin .topology not implemented for cuda") as caught:
        devices_of(request)
    assert caught.value.kind == MISSING


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("0.4.35", "--xla_gpu_autotune_level=0"),
        ("0.5.3", "--xla_gpu_autotune_level=0 --xla_gpu_enable_cub_radix_sort=false"),
        ("0.9.2", "--xla_gpu_autotune_level=0"),
        ("0.10.0", ""),
        ("0.12.0", ""),
    ],
)
def test_flags_that_only_some_releases_need(
    monkeypatch: pytest.MonkeyPatch, release: str, expected: str
) -> None:
    """The user's are the last, which is what counts."""
    monkeypatch.setattr(devices, "version_of", lambda _: release)
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_autotune_level=4")
    assert add_flags(FLAGS_OF_RELEASES["gpu"]) == expected
    assert os.environ["XLA_FLAGS"] == f"{expected} --xla_gpu_autotune_level=4".strip()
