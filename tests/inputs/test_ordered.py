"""Where ids and use-lists come from: what lies beside the module, or what `--order` asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlofuse import load
from hlofuse.compilation import replay_config
from hlofuse.inputs.ordered import lowering_from_dump, replay_input
from hlofuse.ir import HlofuseError, parse_module
from ..fixtures import find_case
from ..running import Run

CASE = find_case(Path(__file__).parent.parent / "passes" / "cases" / "broadcasts.hlo", "broadcast_turned")


@pytest.fixture(params=["dump", "capture"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """One module in a dump directory, or as `hlofuse capture` sorts it."""
    names = ("before_optimizations.hlo", "before.hlo", "after.hlo")
    if request.param == "dump":
        names = (
            "module_0001.jit_broadcast_turned.before_optimizations.txt",
            "module_0001.jit_broadcast_turned.0075.fusion.after_pipeline-start.before_variadic-op-splitter.txt",
            "module_0001.jit_broadcast_turned.0076.fusion.after_priority-fusion.before_cse.txt",
        )
    fusion_input = CASE.section("EXPECT", "h100_sxm")
    for text, name in zip((CASE.text, fusion_input, fusion_input), names, strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def users(module: object, name: str) -> list[str]:
    from hlofuse.ir.graph import Module

    assert isinstance(module, Module)
    found = module.find(name)
    assert found is not None
    return [u.name for u in found.users]


def test_users_are_in_the_order_of_xlas_memory(folder: Path) -> None:

    module = load(folder, target="gpu")
    assert users(module, "broadcast.1.0") == ["multiply.1.0", "multiply.3.0"]
    replayed = replay_input(module, replay_config("gpu", "h100_sxm")).module
    assert replayed is not None
    assert replayed.order_source == "replayed"
    assert users(replayed, "broadcast.1.0") == ["multiply.3.0", "multiply.1.0"]
    assert users(module, "broadcast.1.0") == ["multiply.1.0", "multiply.3.0"]
    # On another device XLA's passes make another module of it; on CPU nothing depends on the order.
    assert replay_input(module, replay_config("gpu", "v100")).module is module
    assert lowering_from_dump(module, replay_config("cpu")) is None


@pytest.mark.parametrize("order", [None, "replayed", "estimated", "text"])
def test_the_first_line_and_the_json_say_where_the_order_comes_from(
    hlofuse: Run, folder: Path, order: str | None
) -> None:
    text = ("explain", folder, "--target", "gpu", "--device", "h100_sxm")
    requested = ("--order", order) if order is not None else ()
    phrases = {
        "replayed": "order replayed",
        "estimated": "order estimated (ties uncertain)",
        "text": "order text (ties uncertain)",
    }
    line = hlofuse(*text, *requested, columns=200).out.splitlines()[0]
    assert phrases[order or "replayed"] in line
    assert " · gpu h100_sxm · XLA 0.11.1 · " in line
    report = json.loads(hlofuse(*text, *requested, "--format", "json").out)
    assert report["order"] == (order or "replayed")
    assert report["xla"]["release"] == "0.11.1"
    assert (report["xla"]["backend"], report["xla"]["device"]) == ("gpu", "h100_sxm")
    assert report["xla"]["flags"] == {}


def test_an_order_that_cannot_be_had_is_an_error(hlofuse: Run, folder: Path) -> None:
    result = hlofuse("replay", folder, "--target", "gpu", "--device", "h100_sxm", "--order", "xla", "-o", "-")
    assert result.status == 2
    assert "--order xla needs XLA's ids" in result.err
    with pytest.raises(HlofuseError, match="--order replayed needs the module before optimizations"):
        replay_input(
            parse_module(CASE.section("EXPECT", "h100_sxm")),
            replay_config("gpu", "h100_sxm"),
            order="replayed",
        )


def test_a_broken_module_before_optimizations_is_passed_over(hlofuse: Run, folder: Path) -> None:
    (path,) = folder.glob("*before_optimizations*")
    path.write_text("HloModule m\n\nENTRY e {\n")
    result = hlofuse("replay", folder, "--target", "gpu", "--device", "h100_sxm", "-o", folder / "out.hlo")
    assert (result.status, "order estimated" in result.err) == (0, True)
