"""The order of equals comes from the module before optimizations where that lies beside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hlofuse import load
from hlofuse.inputs.played import played_beside

from ..fixtures import find_case
from ..running import Run

CASES = Path(__file__).parent.parent / "passes" / "cases"


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
    case = find_case(CASES / "broadcasts.hlo", "broadcast_turned")
    at_fusion = case.section("EXPECT", "h100_sxm")
    for text, name in zip((case.text, at_fusion, at_fusion), names, strict=True):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def users(module: object, name: str) -> list[str]:
    from hlofuse.ir.module import Module

    assert isinstance(module, Module)
    found = module.find(name)
    assert found is not None
    return [u.name for u in found.users]


def test_users_are_in_the_order_of_xlas_memory(folder: Path) -> None:
    from hlofuse.cost.gpu.device import load_device

    module = load(folder, target="gpu")
    assert users(module, "broadcast.1.0") == ["multiply.1.0", "multiply.3.0"]
    played = played_beside(module, "gpu", load_device("h100_sxm"))
    assert played is not None
    assert played.source.name.removesuffix(".hlo").removesuffix(".txt").endswith("before_optimizations")
    assert users(played.module, "broadcast.1.0") == ["multiply.3.0", "multiply.1.0"]
    assert users(module, "broadcast.1.0") == ["multiply.1.0", "multiply.3.0"]
    # On another device XLA's passes make another module of it; on CPU nothing depends on the order.
    assert played_beside(module, "gpu", load_device("v100")) is None
    assert played_beside(module, "cpu", None) is None


def test_the_text_alone_can_be_asked_for(hlofuse: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the text alone comes to may be the same: that nothing is repeated tells."""
    repeated: list[object] = []

    def counted(*asked: Any) -> Any:
        repeated.append(asked)
        return played_beside(*asked)

    monkeypatch.setattr("hlofuse.inputs.played.played_beside", counted)
    asked = ("replay", folder, "--target", "gpu", "--device", "h100_sxm", "-o", folder / "out.hlo")
    for more, times in (((), 1), (("--ids", "none"), 0)):
        repeated.clear()
        result = hlofuse(*asked, *more)
        assert (result.status, result.err, len(repeated)) == (0, "", times)


def test_a_broken_module_before_optimizations_is_passed_over(hlofuse: Run, folder: Path) -> None:
    (path,) = folder.glob("*before_optimizations*")
    path.write_text("HloModule m\n\nENTRY e {\n")
    result = hlofuse("replay", folder, "--target", "gpu", "--device", "h100_sxm", "-o", folder / "out.hlo")
    assert (result.status, result.err) == (0, "")
