"""`tools/bring_up.py`: a release whose behaviour is withheld is found again by XLA's own dumps."""

import sys
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.running import load_tool

TOOL = load_tool("bring_up")
TEXTS = Path(__file__).with_name("around.hlo").read_text(encoding="utf-8")


def case(name: str) -> str:
    return TEXTS.partition(f"// CASE {name}\n")[2].partition("\n\n")[0]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="jaxlib 0.11.1 needs Python 3.12")
def test_a_behaviour_held_out_is_named_with_a_module_of_few_lines(tmp_path: Path) -> None:
    behaviour = "slices_past_ones"
    file = tmp_path / "module.hlo"
    file.write_text(case(behaviour), encoding="utf-8")
    release = TOOL.Release("0.11.1", sys.executable, tmp_path)
    release.compile(str(file), "cpu", tmp_path / "dump")
    found = TOOL.Comparison(release, "cpu")
    found.compare(tmp_path / "dump")
    assert found.groups == {}
    wrong: dict[str, Any] = {behaviour: not getattr(found._behaviour, behaviour)}
    wrong_one = TOOL.Comparison(release, "cpu")
    wrong_one._behaviour = replace(wrong_one._behaviour, **wrong)
    wrong_one.compare(tmp_path / "dump")
    (group,) = wrong_one.groups.values()
    wrong_one.explain(group, monotonic() + 60)
    assert group.explained == {behaviour: 1}
    assert len(group.reduced.strip().splitlines()) <= 10
    assert f"With the other value of {behaviour}: XLA's in 1 of 1" in TOOL.report(wrong_one, "")
