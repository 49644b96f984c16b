"""Texts with a part of a module say what they have, and give no figure of what runs."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

import hlofuse as library
from hlofuse.inputs import load
from hlofuse.inputs.many import load_text
from hlofuse.inputs.part import Part, PartError
from hlofuse.ir.errors import HlofuseError, HloParseError
from hlofuse.pipelines.targets import Stage
from ..running import Run

needs_jaxlib = pytest.mark.skipif(
    importlib.util.find_spec("jaxlib") is None, reason="needs jaxlib (Python 3.12 or newer)"
)
SUM = """%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}
"""
ENTRY = """ENTRY %main (p: f32[2,4], q: f32[2]) -> f32[2] {
  %p = f32[2,4]{1,0} parameter(0)
  %zero = f32[] constant(0)
  %e = f32[2,4]{1,0} exponential(%p), metadata={op_name="jit(f)/exp" source_file="f.py"}
  %r = f32[2]{0} reduce(%e, %zero), dimensions={1}, to_apply=%sum
  %q = f32[2]{0} parameter(1)
  ROOT %n = f32[2]{0} add(%r, %q)
}
"""
HEADER = "HloModule jit_f, entry_computation_layout={(f32[2,4]{1,0}, f32[2]{0})->f32[2]{0}}\n"
HLO = f"{HEADER}\n{SUM}\n{ENTRY}"
INSIDE, BEFORE = "the text ends inside the module's entry", "the text ends before the module's entry"
ABSENT = "the module's entry is not in the text, or not the whole of it"


CALL = '  %c = f32[2]{0} custom-call(%p), custom_call_target="__cublas$gemm", backend_config={"op'
LINE = "%e = f32[2]{0} exponential(%p)"


def part_of(text: str) -> Part:
    with pytest.raises(PartError) as caught:
        load_text(text)
    return caught.value.part


@pytest.mark.parametrize(
    ("text", "contents", "problem"),
    [
        (HLO[: HLO.index("dimensions=")], "2 computations", f"{INSIDE}, in line 13"),
        (HLO[: HLO.index("  %q")], "2 computations", f"{INSIDE}, after line 13"),
        (HLO[:-2], "2 computations", f"{INSIDE}, after line 15"),
        (HLO[: HLO.index("  %q")] + "  ...\n", "2 computations", "lines of it are left out"),
        ("```\n" + HLO[: HLO.index("  %q")] + "```\n", "2 computations", f"{INSIDE}, after line 14"),
        (HLO[: HLO.index("q: f32")], "2 computations", f"{INSIDE}, after line 9"),
        (HLO[: HLO.index("ENTRY")], "1 computation", f"{BEFORE}, after line 6"),
        (HLO[: HLO.index("  ROOT %s")], "1 computation", f"{BEFORE}, after line 5"),
        (SUM, "1 computation", ABSENT),
        (SUM.replace("{", "{\n  %c = f32[2", 1), "1 computation", ABSENT),
        (ENTRY, "1 computation", "the text lacks sum"),
        (
            HLO.replace("  %q", "}\n  %q"),
            "2 computations and 2 instructions",
            "its lines do not make one module",
        ),
        (f"{HLO}ENTRY e {{\n", "3 computations", "its lines do not make one module"),
        (f"{HEADER}\n{ENTRY}", "1 computation", "the text lacks sum"),
        (ENTRY[: ENTRY.index("  %q")], "1 computation", f"{INSIDE}, after line 5"),
        (ENTRY.replace("  %q", "  ...\n  %q"), "1 computation", "lines of it are left out"),
        ("  %e = f32[2]{0} exponential(%p)\n  %n = f32[2]{0} negate(%e)\n", "2 instructions", ABSENT),
        (f"{SUM}\n  %e = f32[2]{{0}} exponential(%p)\n", "1 computation and 1 instruction", ABSENT),
    ],
)
def test_what_there_is_and_why_it_is_not_all(text: str, contents: str, problem: str) -> None:
    part = part_of(text)
    assert (part.contents, part.problem) == (f"{contents} of a module", problem)


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        (f"{LINE}\n}}\n\nHloModule other, is_scheduled=true\n\n%fus", "1 instruction of a module"),
        (f"The first line is\n\n{HEADER}\nand so on\n", "the header of a module"),
        (HEADER[:60], "the header of a module"),
        ("HloModule m, is_scheduled=true, entry_compu", "the header of a module after all passes"),
        (f"a.cc:7] {CALL}", "the beginning of an instruction of a GPU module"),
    ],
)
def test_less_than_an_instruction(text: str, contents: str) -> None:
    part = part_of(text)
    assert part.contents == contents
    assert (part.problem == "only the header is in the text") == ("header" in contents)


def test_only_whole_lines_count() -> None:
    part = part_of(HLO[: HLO.index("dimensions=")])
    first, entry = part.fragments
    assert (first.is_entry, first.is_whole, len(list(first.computation))) == (False, True, 3)
    assert (entry.is_entry, entry.is_whole, len(list(entry.computation))) == (True, False, 3)
    assert part.cut is not None
    assert (part.cut.name, part.cut.opcode) == ("r", "reduce")
    assert not part_of(HLO[: HLO.index("  %q")]).cut


def test_a_cut_anywhere_before_the_last_brace_is_no_module() -> None:
    for end in range(len(HEADER), HLO.rindex("}")):
        try:
            module = load_text(HLO[:end] + "\n")
        except HlofuseError:
            continue
        raise AssertionError(f"{HLO[:end]!r} is {module}")
    assert load_text(HLO[: HLO.rindex("}") + 1]).entry.name == "main"


@pytest.mark.parametrize("colour", ["\x1b[1m{}\x1b[0m", "[33m{}[0m"])
def test_no_other_computation_becomes_the_entry(colour: str) -> None:
    coloured = HLO.replace("ENTRY", colour.format("ENTRY"))
    assert [i.name for i in load_text(coloured).entry] == ["p", "zero", "e", "r", "q", "n"]
    assert part_of(coloured[: coloured.index("  %q")]).entry is not None


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        (HLO.replace("ENTRY ", ""), True),  # the layout is that of the last one
        (f"{HEADER}\n{SUM}", False),
        (f"{HEADER}\nsum {{\n  a = f32[] parameter(0)\n  ROOT n = f32[] negate(a)\n}}\n", False),
        ("HloModule m\n\ne {\n  ROOT p = f32[] parameter(0)\n}\n", True),  # by hand
        ("HloModule m\n\nregion_0.1 {\n  ROOT p = f32[] parameter(0)\n}\n", False),
        (f"HloModule m\n\n{SUM}", False),
    ],
)
def test_without_the_word_entry(text: str, is_whole: bool) -> None:
    if is_whole:
        assert load_text(text).entry.name in ("main", "e")
    else:
        assert part_of(text).entry is None


CONFIG = '  %d = f32[2]{0} dot(%p, %p), backend_config={"operation_queue_id":"0","fusi'


@pytest.mark.parametrize("line", [CALL, CONFIG, CALL.partition(", backend")[0] + "\n"])
def test_the_line_that_is_cut_shows_the_backend(line: str) -> None:
    part = part_of(HLO[: HLO.index("  %q")] + line)
    assert part.backend is not None
    assert (part.backend.value, part.contents) == ("gpu", "2 computations of a GPU module")


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        (SUM, None),
        (f"HloModule m, is_scheduled=true\n\n{SUM}", Stage.SCHEDULED),
        (SUM.replace("%sum", "%fused_computation.1.clone"), Stage.FUSED),
        (SUM.replace("%sum", "%wrapped_add_computation.2"), Stage.FUSED),
        (SUM.replace("%sum", "%fused_attention.2"), None),  # a function of the user's
        ("  %f = f32[2]{0} fusion(%p), kind=kLoop, calls=%c\n", Stage.FUSED),
        ("  %f = f32[2]{0} fusion(%p), kind=kCustom, calls=%c\n", None),  # made before fusion
    ],
)
def test_the_stage_where_something_shows_it(text: str, stage: Stage | None) -> None:
    assert part_of(text).stage is stage


def test_computations_with_their_entry_are_a_module() -> None:
    module = load_text(f"so it is:\n\n{SUM}\n{ENTRY}\nand slow\n")
    assert [i.name for i in module.entry] == ["p", "zero", "e", "r", "q", "n"]
    assert module.text_note == "found in a longer text without HloModule"
    headed = load_text(f"{HEADER.strip()}, is_scheduled=true\n  stray = f32[] parameter(0)\n{SUM}\n{ENTRY}")
    assert (headed.name, headed.is_scheduled, headed.text_note) == ("jit_f", True, "found in a longer text")


def test_a_wrong_module_is_no_part() -> None:
    for wrong in (HLO.replace("%zero)", "%nobody)"), HLO.replace("constant(0)", "constant(x)")):
        with pytest.raises(HloParseError):
            load_text(wrong)
    with pytest.raises(HloParseError, match="did you mean sum"):
        load_text(HLO.replace("to_apply=%sum", "to_apply=%sums"))
    with pytest.raises(HloParseError, match="did you mean negate"):
        load_text("x = f32[2] negat(f32[2] y)")


@pytest.mark.parametrize(
    "line",
    [
        f"I0101 12:00:00.000001  123 a.cc:7] {LINE}",
        f"2026-01-02 03:04:05.123456: I xla/a.cc:7] {LINE}",
        f"[2026-01-02T03:04:05Z] {LINE}",
        f"> > {LINE}",
        f"XlaRuntimeError: INTERNAL: {LINE} has no layout",
        f"  XLA label: `{LINE}`",
        f'  ROOT {LINE}, metadata={{op_name="it is "quoted""}}',
        f'12 cycles :: 2.4 usec :: {LINE}, backend_config="{{\\"a\\":1}}"',
        LINE.replace(" = ", "\u00a0=\u00a0"),
        LINE.replace("%e", "\x1b[32m%e\x1b[0m"),
    ],
)
def test_a_line_of_a_log(line: str) -> None:
    part = part_of(f"nothing\n{line}\nmore\n")
    assert part.contents == "1 instruction of a module"
    assert [(i.name, i.opcode) for i in part.fragments[0].computation] == [("e", "exponential")]


def marked(text: str, mark: str) -> str:
    return "".join(f"{mark}{line}\n" for line in text.splitlines())


OLD = "-  %zero = f32[] constant(1)\n"
COPIES = {
    "no-break spaces": HLO.replace(" ", "\u00a0"),
    "HTML": HLO.replace('"', "&quot;").replace(">", "&gt;").replace("(f)", "(&#102;)"),
    "HTML with tags": HLO.replace('"', "&#34;").replace("ENTRY", "<span class=k>ENTRY</span>"),
    "typographic quotes": HLO.replace('="', "=\u201c").replace('" ', "\u201d ").replace('"}', "\u201d}"),
    "colours": HLO.replace("%", "\x1b[1;34m%\x1b[0m"),
    "quoted": marked(HLO, "> > "),
    "diff of a new file": "@@ -0,0 +1,17 @@\n" + marked(HLO, "+"),
    "diff of added lines": marked(HLO, "+").replace("+  %zero", f"{OLD}+  %zero"),
    "lines joined": " ".join(HLO.split()),
    "notes behind lines": HLO.replace("constant(0)\n", "constant(0)  # why?\n"),
    "notebook": json.dumps({"text": HLO.splitlines(keepends=True)}, indent=1),
    "JSON log": "\n".join(json.dumps({"log": x + "\n", "s": 1}) for x in HLO.splitlines()),
    "terminal": "".join(f"{x[k : k + 40]}\n" for x in HLO.split("\n") for k in range(0, len(x), 40)),
    "diff": "--- a\n+++ b\n@@ -1,17 +1,17 @@\n" + marked(HLO, " ").replace("   %zero", f"{OLD}+  %zero"),
}


@pytest.mark.parametrize("kind", COPIES)
def test_a_copied_text_is_the_module(kind: str) -> None:
    module = load_text(COPIES[kind])
    assert [i.name for i in module.entry] == ["p", "zero", "e", "r", "q", "n"]
    exponential = module.entry.root.operands[0].operands[0]
    assert exponential.op_name == "jit(f)/exp"
    assert exponential.users[0].operands[1].payload == "0"


def test_what_is_cut_counts() -> None:
    part = part_of(repr(HLO[: HLO.index("  %q")])[:-1])
    assert (part.module.name, part.contents) == ("jit_f", "2 computations of a module")
    call = '%c = f32[2]{0} custom-call(%r), custom_call_target="__cublas$gemm", backend_config={"a":1,…\n'
    part = part_of(f"{call}%n = f32[2]{{0}} add(%c, %c)\n")
    assert (part.left_out, part.contents) == (True, "2 instructions of a GPU module")


def test_a_part_of_a_diff_is_a_part() -> None:
    lines = [f" {line}" for line in HLO.splitlines()]
    hunks = ["@@ -1,9 +1,9 @@", *lines[:9], "@@ -14,3 +14,3 @@", *lines[13:]]
    assert part_of("\n".join(hunks)).problem == "lines of it are left out"
    assert part_of("\n".join(["@@ -7,9 +7,9 @@", *lines[10:13], "-  %x = f32[] constant(1)"])).contents == (
        "3 instructions of a module"
    )


def test_escapes_in_a_whole_module_stay() -> None:
    module = load_text(HLO.replace("jit(f)/exp", "a &lt; b\u00a0[0m"))
    assert module.entry.root.operands[0].operands[0].op_name == "a &lt; b\u00a0[0m"


@pytest.mark.parametrize("bad", ['op_name="say "hi""', 'op_name="jit(f)', 'op_name=x" source_line=', '"'])
def test_metadata_that_cannot_be_read_is_left_out(bad: str) -> None:
    module = load_text(HLO.replace('op_name="jit(f)/exp" source_file="f.py"', bad))
    assert module.text_note == "metadata of 1 instruction left out"
    assert module.entry.root.operands[0].operands[0].op_name is None
    assert len(module.entry.root.operands[0].operands) == 2


MLIR = """module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.exponential %a : tensor<8xf32> loc(#loc1)
    return %0 : tensor<8xf32>
  }
}
"""
LOCATION = '#loc1 = loc("jit(f)/exp")\n'
MESH = MLIR.replace("  func", '  sdy.mesh @mesh = <["x"=2]>\n  func', 1)
FUNCTION = "".join(line.removeprefix("  ") for line in MLIR.splitlines(keepends=True)[1:-1])


@needs_jaxlib
@pytest.mark.parametrize(
    "text",
    [
        LOCATION + MLIR,
        f"// RUN: opt %s\n\n{MLIR.replace('@jit_f ', '')}{LOCATION}",
        f"julia> @code_hlo f(x)\n{MLIR}{LOCATION}",
        f"As printed:\n\n```mlir\n{LOCATION}{MLIR}```\nwhy {{\n",
        f"so\n{''.join(f'> {line}' for line in (LOCATION + MLIR).splitlines(keepends=True))}\nis it\n",
        f"text\n{FUNCTION}{LOCATION}",
        LOCATION + MESH,
        (LOCATION + MLIR).replace("<", "&lt;").replace(">", "&gt;"),
    ],
)
def test_stablehlo_in_a_longer_text(text: str) -> None:
    module = load_text(text)
    assert [i.opcode for i in module.entry] == ["parameter", "exponential"]
    assert module.entry.root.op_name == "jit(f)/exp"
    assert module.lowered_from == "StableHLO text"


GENERIC = """"builtin.module"() ({
  "func.func"() <{function_type = (tensor<8xf32>) -> tensor<8xf32>, sym_name = "main"}> ({
  ^bb0(%a: tensor<8xf32>):
    %0 = "stablehlo.exponential"(%a) : (tensor<8xf32>) -> tensor<8xf32>
    "func.return"(%0) : (tensor<8xf32>) -> ()
  }) : () -> ()
}) : () -> ()
"""


@needs_jaxlib
@pytest.mark.parametrize("text", [GENERIC, f"Tested with\n\n```\n{GENERIC}```\nas above\n"])
def test_stablehlo_in_its_generic_form(text: str) -> None:
    assert [i.opcode for i in load_text(text).entry] == ["parameter", "exponential"]


JSON = 'backend_config={\n    "fusion_config":{\n      "kind":"x"\n    }\n  }\n'


def test_json_may_go_on_for_some_lines() -> None:
    written = HLO.replace("exponential(%p)", f"exponential(%p), {JSON}".rstrip(), 1)
    written = written.replace('}, metadata={op_name="jit(f)/exp" source_file="f.py"}', "}")
    for text in (written, f"See\n\n```\n{written}```\nwhy\n"):
        assert [i.name for i in load_text(text).entry] == ["p", "zero", "e", "r", "q", "n"]
    found = part_of(written[: written.index("  %q")])
    assert (found.contents, found.problem) == ("2 computations of a module", f"{INSIDE}, after line 17")


def test_a_test_of_a_compiler_is_no_mlir() -> None:
    """Its comments speak of MLIR; attributes go on in the next line, and there is no header."""
    text = f"// RUN: opt %s\n// CHECK: func.func @f\n\n{SUM}\n{ENTRY}".replace(
        "dimensions={1}, ", "dimensions={1},\n    "
    )
    assert [i.name for i in load_text(text).entry] == ["p", "zero", "e", "r", "q", "n"]


# Reports.

QUESTIONS = ("explain", "kernels", "stats", "what-if", "why")


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_says_what_there_is(question: str, tmp_path: Path, hlofuse: Run) -> None:
    path = tmp_path / "cut.hlo"
    path.write_text(HLO[: HLO.index("  %q")] + CALL)
    name = ["n"] if question == "why" else []
    result = hlofuse(question, path, *name)
    assert result.status == 0
    assert "jit_f: 2 computations of a GPU module" in result.out
    assert "The instruction that is cut, c, calls __cublas$gemm." in result.out
    assert "0 B" not in result.out
    document = json.loads(hlofuse(question, path, *name, "--format", "json").out)
    assert document["schema"] == f"hlofuse.{question}/3"
    assert (document["module"], document["totals"], document["stage"]) == ("jit_f", None, None)
    assert (document["xla"]["backend"], document["xla"]["release"]) == ("gpu", None)
    assert [c["instructions"] for c in document["computations"]] == [3, 4]


@pytest.mark.parametrize(
    "call",
    [
        ("replay", "{}", "-o", "{}.out"),
        ("render", "{}", "-o", "{}.svg"),
        ("explore", "{}", "-o", "{}.html"),
        ("plot", "{}", "-o", "{}.svg"),
        ("check", "{}", "--max-kernels", "9"),
        ("diff", "{}", "{}"),
        ("stats", "{}", "{}"),
        ("optimize", "{}"),
    ],
)
def test_nothing_is_drawn_replayed_or_judged(call: tuple[str, ...], tmp_path: Path, hlofuse: Run) -> None:
    path = tmp_path / "cut.hlo"
    path.write_text(HLO[: HLO.index("  %q")])
    result = hlofuse(*(word.format(path) for word in call))
    assert (result.status, result.out) == (2, "")
    assert f"has 2 computations of a module: {INSIDE}, after line 13; give the whole module" in result.err
    assert [f.name for f in tmp_path.iterdir()] == ["cut.hlo"]


def test_the_library_explains_a_part_and_has_no_totals() -> None:
    report = library.open(HLO[: HLO.index("  %q")])
    assert report.explain().to_json()["totals"] is None
    assert [row["name"] for row in report.explain().rows()] == ["sum", "main"]
    with pytest.raises(HlofuseError, match="give the whole module"):
        _ = report.totals


def test_a_directory_says_it_of_its_file(tmp_path: Path, hlofuse: Run) -> None:
    (tmp_path / "module_0001.jit_f.before_optimizations.txt").write_text(HLO[: HLO.index("  %q")])
    with pytest.raises(PartError):
        load(tmp_path)
    result = hlofuse("explain", tmp_path)
    assert result.status == 0
    assert "jit_f: 2 computations" in result.out


TWO_FUNCTIONS = """module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<8xf32>) -> (tensor<8xf32> {jax.result_info = "a{"}) {
    %0 = stablehlo.tanh %arg0 : tensor<8xf32>
    %1 = call @inner(%0) : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
  func.func private @inner(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""
MAIN = TWO_FUNCTIONS.replace("public ", "")


@needs_jaxlib
@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (1, "only the header"),
        (3, f"{INSIDE}, after line 3"),
        (5, INSIDE),
        (9, "the text lacks the end of inner"),
    ],
)
def test_stablehlo_that_ends_early_has_no_figures(lines: int, problem: str) -> None:
    text = "\n".join(TWO_FUNCTIONS.splitlines()[:lines]) + "\n"
    with pytest.raises(PartError) as caught:
        load_text(text)
    part = caught.value.part
    assert problem in part.problem
    assert part.contents.endswith("module before optimizations")
    operations = [i.opcode for i in part.module.instructions()]
    assert operations == ["tanh", "call", "add"][: (lines > 2) + (lines > 3) + (lines > 7)]


@needs_jaxlib
@pytest.mark.parametrize(
    ("text", "problem", "counts"),
    [
        (MAIN.partition("    return")[0], "after line 4", {"main": 2}),
        (GENERIC.partition('    "func.return"')[0], "after line 4", {"main": 1}),
        (TWO_FUNCTIONS.partition(" = 1")[0].join(["as\n", "\n"]), "only the header is in the text", {}),
        (TWO_FUNCTIONS.replace("@main", "@f")[:-9], "end of inner", {"f": 2, "inner": 1}),
        ('julia> f(x)\nmodule @"f!" {\n  func.func @main(%a:\n', f"{INSIDE}, after line 3", {"main": 0}),
    ],
)
def test_the_function_main_is_the_entry(text: str, problem: str, counts: dict[str, int]) -> None:
    with pytest.raises(PartError) as caught:
        load_text(text)
    part = caught.value.part
    assert problem in part.problem
    assert {c.name: len(list(c)) for c in part.module.computations} == counts


@needs_jaxlib
def test_stablehlo_that_is_whole_is_no_part() -> None:
    assert len(list(load_text(TWO_FUNCTIONS).computations)) == 2
    with pytest.raises(HlofuseError, match="jaxlib cannot read") as caught:
        load_text(TWO_FUNCTIONS.replace("stablehlo.tanh", "stablehlo.tahn"))
    assert not isinstance(caught.value, PartError)
