"""Modules in logs, pages, saved graphs and string literals; several in one file; dumps cut short."""

from __future__ import annotations

import json
import pprint
from pathlib import Path

import pytest

from hlofuse.inputs import load, read_text
from hlofuse.ir import HloParseError, Module
from hlofuse.ir.errors import HlofuseError

HLO = """HloModule jit_f, entry_computation_layout={(f32[2,4]{1,0}, f32[2]{0})->f32[2]{0}}

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (p: f32[2,4], q: f32[2]) -> f32[2] {
  %p = f32[2,4]{1,0} parameter(0)
  %zero = f32[] constant(0)
  %e = f32[2,4]{1,0} exponential(%p), metadata={op_name="it's" source_file="C:\\\\f"}
  %r = f32[2]{0} reduce(%e, %zero), dimensions={1}, to_apply=%sum
  %q = f32[2]{0} parameter(1)
  ROOT %n = f32[2]{0} add(%r, %q)
}
"""
OTHER = HLO.replace("jit_f", "jit_g")
LINES = HLO.splitlines()


def logged(text: str, interleave: str = "") -> str:
    lines = text.splitlines()
    return "".join(f"I0101 12:00:0{n % 10}.{n:06} {n} a.cc:7] {s}\n{interleave}" for n, s in enumerate(lines))


BUSY = "W0101 12:00:00.000001 9 other.cc:8] busy {\n"
AROUND: dict[str, tuple[str, str | None]] = {
    "alone": (HLO, None),
    "comments": (f"// RUN: opt %s\n\n{HLO}// CHECK: HloModule jit_f\n// -----\n", None),
    "log, first line": (f"hello\n{logged('x')}I0101 12:00:01.5 1 a.cc:7] {HLO}{BUSY}", "lines 3–18 of a log"),
    "log, every line": (f"{BUSY}{logged(HLO)}{BUSY}", "lines 2–17 of a log"),
    "log, spaces lost": ("".join(f"{s.rstrip()}\n" for s in logged(HLO).splitlines()), "lines 1–16 of a log"),
    "log, two threads": (logged(HLO, BUSY), "lines 1–31 of a log"),
    "log, broken into": (BUSY + HLO.replace("  %e", f"{BUSY}  %e"), "lines 2–18 of a log"),
    "Markdown": (f"# HloModule is slow\n\n```hlo\n{HLO}```\nwhy {{\n", "lines 4–19 of a Markdown file"),
    "quoted": ("so\n\n" + "".join(f"> {s}\n" for s in LINES), "lines 3–18 of a longer text"),
    "indented": ("so\n\n" + "".join(f"    {s}\n" for s in LINES), "lines 3–18 of a longer text"),
    "graph": (
        f"[Sync]\nHashes: (1)\n\n## BEGIN_GRAPH\n{HLO}\n## END_GRAPH\n\n",
        "lines 5–20 of a PyTorch/XLA graph file",
    ),
    "end": (f"{HLO}\n## END_GRAPH\n", "lines 1–16"),
    "C++": (f'const char* k = R"(\n{HLO})";\n', "lines 2–17 of a longer text"),
    "Python": (f'X = """{HLO}"""\n', "lines 1–16"),
    "repr": (f">>> f\n{HLO!r}\n", "a string literal in line 2"),
    "repr, a line first": (repr("\n" + HLO), "a string literal in line 1"),
    "repr, pieces": (f"x = {pprint.pformat(HLO)}\n", "a string literal in line 1"),
    "JSON": (json.dumps({"n": 1, "hlo": HLO}, indent=1), "a string literal in line 3"),
}  # fmt: skip


def saved(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "m.txt"
    path.write_text(text, encoding="utf-8")
    return path


def names(module: Module) -> list[str]:
    return [i.name for c in module.computations for i in c]


@pytest.mark.parametrize("kind", AROUND)
def test_the_module_is_found(tmp_path: Path, kind: str) -> None:
    text, where = AROUND[kind]
    module = load(saved(tmp_path, text))
    assert names(module) == ["a", "b", "s", "p", "zero", "e", "r", "q", "n"]
    assert module.text_note == (where and f"found in {where}")
    assert module.entry.root.operands[0].operands[0].attributes["metadata"].source_file == "C:\\f"


@pytest.mark.parametrize("kind", AROUND)
def test_errors_have_the_place_in_the_file(tmp_path: Path, kind: str) -> None:
    text = AROUND[kind][0].replace("constant(0)", "constant(x)")
    with pytest.raises(HloParseError) as caught:
        load(saved(tmp_path, text))
    error = caught.value
    assert error.source_line == text.splitlines()[error.line - 1]
    assert error.source_line[error.column - 1 :].startswith("x)")


def test_read_text_keeps_the_line_numbers(tmp_path: Path) -> None:
    text = read_text(saved(tmp_path, AROUND["graph"][0]))
    assert text == "\n\n\n\n" + HLO
    cut = HLO[: HLO.index("  %q")]
    assert read_text(saved(tmp_path, cut)) == cut  # what has no place for a note gets nothing made up


def test_the_far_largest_of_several_is_taken(tmp_path: Path) -> None:
    large = HLO.replace("it's", "x" * 99)
    small = "HloModule tiny\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"
    module = load(saved(tmp_path, f"{small}// -----\n{large}"))
    assert (module.name, module.text_note) == ("jit_f", "module 2 of 2, in lines 7–22")


def test_lit_tests_without_headers(tmp_path: Path) -> None:
    one, two = (f"e {{\n  ROOT {name} = f32[] parameter(0)\n}}\n" for name in "pq")
    module = load(saved(tmp_path, f"// RUN: opt %s\n\n{one}// CHECK: x\n// -----\n\n{two}"), "2")
    assert (module.entry.root.name, module.text_note) == ("q", "module 2 of 2, in lines 9–12")
    page = saved(tmp_path, f"```\nimport jax\n```\n```\nENTRY {one}```\nor\n```\nENTRY {two}```\n")
    assert load(page, "2").entry.root.name == "q"


def test_a_header_over_several_lines_and_an_entry_without_the_word(tmp_path: Path) -> None:
    plain = HLO.replace("ENTRY ", "").replace("layout={(", "layout={\n(")
    text = f"{plain}// -----\n{OTHER}"
    assert load(saved(tmp_path, text), "jit_f").text_note == "module 1 of 2, in lines 1–17"
    assert load(saved(tmp_path, HLO.replace("ENTRY ", ""))).text_note is None


@pytest.mark.parametrize("choice", ["jit_g", "g", "2"])
def test_one_of_several_is_chosen_by_name_or_number(tmp_path: Path, choice: str) -> None:
    path = saved(tmp_path, f"{HLO}// -----\n{OTHER}")
    module = load(path, choice)
    assert (module.name, module.text_note) == ("jit_g", "module 2 of 2, in lines 18–33")
    with pytest.raises(HlofuseError) as caught:
        load(path)
    assert str(caught.value) == (
        f"{path} has 2 modules; select one with --module:\n"
        "    1  jit_f  lines 1–16              532 B\n"
        "    2  jit_g  lines 18–33             532 B"
    )
    with pytest.raises(HlofuseError, match=r"no module jit_h; did you mean jit_"):
        load(path, "jit_h")


def test_a_single_module_is_not_another(tmp_path: Path) -> None:
    assert load(saved(tmp_path, HLO), "f").name == "jit_f"
    with pytest.raises(HlofuseError, match="this input is a single module"):
        load(saved(tmp_path, HLO), "g")
