"""Installed packages: listed, asked for by name, and told apart from XLA when they are wrong."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from ..running import Run

GOOD = """
from hlofuse.plugins import FusionRule

RULES = (
    FusionRule(
        code="ACME001", title="No [bold]broadcast[/bold]", why="Because we say so.", advice="Live with it.",
        applies=lambda pair: pair.producer_root.opcode == "broadcast",
    ),
)
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """`install("acme", text)`: a package on the path, as an installer would leave it there."""
    monkeypatch.syspath_prepend(str(tmp_path))
    count = 0

    def make(name: str, text: str, what: str = "RULES") -> None:
        nonlocal count
        count += 1
        module = f"rules_{tmp_path.name.replace('-', '_')}_{count}"
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(text))
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-rules\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[hlofuse.rules]\n{name} = {module}:{what}\n")

    return make


def test_an_installed_package_is_listed_and_not_used(install, hlofuse: Run, samples: Path) -> None:  # type: ignore[no-untyped-def]
    before = samples / "cpu" / "softmax" / "before.hlo"
    plain = hlofuse("explain", before)
    listed = hlofuse("rule")
    install("acme", GOOD)
    assert hlofuse("explain", before) == plain
    result = hlofuse("rule")
    assert result.out.startswith(listed.out[:2000])
    assert "ACME  acme (acme-rules 1.0), not XLA's\n  ACME001" in result.out
    page = hlofuse("rule", "acme001").out
    assert page.startswith("ACME001  No [bold]broadcast[/bold]\n")
    assert "Comes from\n  acme (acme-rules 1.0); it is not XLA's" in page
    assert "Why XLA asks" not in page
    assert json.loads(hlofuse("rule", "ACME001", "--format", "json").out)["rules"][0]["package"] == (
        "acme (acme-rules 1.0)"
    )


@pytest.mark.parametrize("name", ["acme", "all"])
def test_every_report_says_first_that_it_took_part(install, name: str, hlofuse: Run, samples: Path) -> None:  # type: ignore[no-untyped-def]
    install("acme", GOOD)
    before = samples / "cpu" / "softmax" / "before.hlo"
    change = "with the rules of acme (acme-rules 1.0)"
    banner = f"Settings differ from XLA's: {change}."
    text = (before, "--rules", name)
    explained = hlofuse("explain", "--details", *text, columns=200)
    lines = explained.out.splitlines()
    assert explained.status == 0
    assert lines[lines.index(banner) + 1].startswith("against XLA's own: ")
    assert lines.index(banner) < 5
    assert "as XLA in" not in explained.out
    assert "No [bold]broadcast[/bold] (not XLA's: acme (acme-rules 1.0))" in explained.out
    assert f"--rules {name}" in explained.out, "commands to go on with ask the same"
    data = json.loads(hlofuse("explain", *text, "--format", "json").out)
    assert data["what_if"] == data["difference"]["changes"] == [change]
    refused = next(e for p in data["passes"] for e in p["refused"] if e["rule"] == "ACME001")
    requested = refused["producer"]["name"]
    why = hlofuse("why", before, requested, "--rules", name, columns=200).out.splitlines()
    assert why[1] == banner
    assert any("ACME001" in line for line in why)
    escaped = change.replace("(", r"\(").replace(")", r"\)")
    for command in (("explain", before), ("why", before, requested), ("stats", before)):
        markdown = hlofuse(*command, "--rules", name, "--format", "markdown").out
        assert f"\n\n> **Settings differ from XLA's: {escaped}.**\n" in markdown
    assert change in hlofuse("replay", *text, "-o", "-").err
    picture = hlofuse("render", *text, "-o", "-")
    assert (picture.status, change in picture.out) == (0, True)
    counted = hlofuse("stats", *text, columns=200).out
    assert counted.splitlines()[1] == banner
    ranked = json.loads(hlofuse("what-if", *text, "--format", "json").out)
    assert ranked["changes"] == [change]
    assert "ACME001" in [r["rule"] for r in ranked["relaxed"]], "it can be switched off like XLA's own"
    device = ("--target", "gpu", "--device", "v100", "--compare-device", "h100_sxm", "--rules", name)
    compared = hlofuse("explain", samples / "gpu" / "softmax" / "before.hlo", *device)
    assert banner in compared.out.splitlines()[:4]


def test_one_of_its_rules_can_be_switched_off(install, hlofuse: Run, samples: Path) -> None:  # type: ignore[no-untyped-def]
    install("acme", GOOD)
    before = samples / "cpu" / "softmax" / "before.hlo"
    plain = hlofuse("replay", before, "-o", "-").out
    assert hlofuse("replay", before, "-o", "-", "--rules", "acme").out != plain
    assert hlofuse("replay", before, "-o", "-", "--rules", "acme", "--disable", "ACME001").out == plain
    result = hlofuse("replay", before, "-o", "-", "--disable", "ACME001")
    assert (result.status, "there is no rule 'ACME001'" in result.err) == (2, True)


BAD = {
    "import no_such_module_at_all": "acme (acme-rules 1.0) cannot be imported: ModuleNotFoundError: ",
    "x = 1": "cannot be imported: AttributeError",
    "RULES = 3": "expected a tuple of FusionRule objects, found int",
    "RULES = ('x',)": "expected a tuple of FusionRule objects, found str among them",
    GOOD.replace("ACME001", "CPU007"): "'CPU007' is the code of a rule of XLA's: ",
    GOOD.replace("ACME001", "acme-1"): "'acme-1' is no code: expected two to eight capitals and three digits",
    GOOD + "RULES *= 2": "'ACME001' is there twice",
    GOOD.replace("title", "titel"): "cannot be imported: TypeError",
    GOOD.replace(
        'advice="Live', 'passes=("fuse",), advice="Live'
    ): "ACME001 is about pass 'fuse'; there are: ",
    GOOD.replace('pair.producer_root.opcode == "broadcast"', "pair.nothing"): (
        "the condition of rule ACME001, which is not XLA's, failed: AttributeError"
    ),
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_package_is_named_and_harms_nobody_else(
    install: Any, text: str, hlofuse: Run, samples: Path
) -> None:
    install("acme", text)
    before = samples / "cpu" / "softmax" / "before.hlo"
    result = hlofuse("explain", before, "--rules", "acme")
    assert (result.status, result.out) == (2, "")
    assert BAD[text] in result.err
    assert "Traceback" not in result.err
    assert hlofuse("explain", before).status == 0
    listed = hlofuse("rule")
    assert listed.status == 0
    assert "CPU001" in listed.out


def test_packages_must_agree_on_names(install, hlofuse: Run, samples: Path) -> None:  # type: ignore[no-untyped-def]
    before = samples / "cpu" / "softmax" / "before.hlo"
    none = hlofuse("explain", before, "--rules", "acme")
    assert (none.status, "no installed package registers rules as 'acme'" in none.err) == (2, True)
    install("acme", GOOD)
    install("other", GOOD)
    assert "there are: acme, other" in hlofuse("explain", before, "--rules", "acmee").err
    both = hlofuse("explain", before, "--rules", "acme", "--rules", "other")
    assert (both.status, "acme and other both have a rule ACME001" in both.err) == (2, True)
    assert hlofuse("explain", before, "--rules", "acme", "--rules", "acme").status == 0
    install("acme", GOOD)
    twice = hlofuse("explain", before, "--rules", "acme")
    assert (twice.status, "two installed packages register rules as 'acme'" in twice.err) == (2, True)
