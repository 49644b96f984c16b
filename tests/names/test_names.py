"""Any name: of any stage, of a profile, a source line, a part of an `op_name`."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hlofuse.compilation import compile
from hlofuse.format.paths import has_part
from hlofuse.ir import parse_module
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.text.printer import print_module
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.common.names import Names, matching
from hlofuse.reports.why.model import PairAnswer, Story
from hlofuse.reports.why.story import answers
from ..fixtures import companion_texts
from ..running import Run

TEXTS = companion_texts(__file__)

TEXT = TEXTS["text"].replace(
    "METADATA", 'metadata={op_name="jit(f)/transpose(jvp(softmax))/dot" stack_frame_id=2}'
)


@pytest.mark.parametrize(
    ("part", "there"),
    [
        ("softmax", True),
        ("softmax/exp", True),
        ("jit(f)/softmax/exp", True),
        ("f/softmax", True),
        ("soft", False),
        ("softmax/ex", False),
        ("f/exp", False),
        ("", False),
        ("/", False),
    ],
)
def test_parts_are_whole_components(part: str, there: bool) -> None:
    assert has_part("jit(f)/softmax/exp", part) is there


def test_transformations_and_merged_operations() -> None:
    assert has_part("jit(f)/transpose(jvp(softmax))/exp", "softmax/exp")
    assert has_part("jit(f)/a;jit(f)/softmax/exp", "softmax/exp")
    assert not has_part("jit(f)/a;softmax", "a/softmax")


def story_names(text: str, name: str) -> list[str]:
    found = answers(compile(parse_module(text)), name)
    return [a.described.name for a in found if isinstance(a, Story)]


def test_a_line_means_the_kernels_that_it_makes() -> None:
    """With as much of the path as somebody types; also through a package that the line calls."""
    for file in ("model.py", "net/model.py", "/home/me/project/net/model.py"):
        found = answers(compile(parse_module(TEXT)), f"{file}:7")
        kernels = [a for a in found if isinstance(a, Story)]
        assert len(kernels) == 2, file
        assert {a.fate for a in kernels} == {"kernel"}
        assert {n for a in kernels for n in (*a.meant, a.described.name)} >= {"n", "e", "d"}
    assert story_names(TEXT, "flax/linen.py:35") == ["d"]
    assert len(story_names(TEXT, "model.py:9")) == 2
    assert "d" in story_names(re.sub(", metadata=.*/dot.*", "", TEXT), "model.py:9")  # as after an expansion
    with pytest.raises(HlofuseError, match=r"no operation from that source line"):
        story_names(TEXT, "odel.py:7")


def test_a_part_of_an_op_name_means_its_kernels() -> None:
    assert len(story_names(TEXT, "softmax")) == 2
    assert len(story_names(TEXT, "jit(f)/softmax/exp")) == 1
    assert len(story_names(TEXT, "jit(f)/tail")) == 2


def test_an_instruction_goes_before_parts_of_op_names() -> None:
    text = TEXT.replace("%c =", "%softmax =").replace("%c)", "%softmax)")
    (named,) = Names(Facts(compile(parse_module(text)))).find("%softmax")
    assert named.name == "softmax"


def test_a_final_name_and_another_ones_name_at_fusion_are_both_answered() -> None:
    """`s` of a profile is what fusion calls `c`, and `s` at fusion is another."""
    done = compile(parse_module(TEXT))
    kernels = [n for n in done.after.entry.instructions if n.opcode == "fusion"]
    first, second = kernels[0].name, kernels[1].name
    text = re.sub(rf"%{first}\b", "%swapped", print_module(done.after))
    text = re.sub(rf"%{second}\b", f"%{first}", text).replace("%swapped", f"%{second}")
    done.find_final = partial(parse_module, text)
    found = Names(Facts(done)).find(first)
    assert [n.name for n in found] == [second, first]


def test_pairs_of_several_are_those_that_are_neighbours() -> None:
    done = compile(parse_module(TEXT))
    found = answers(done, "softmax", "model.py:9")
    assert len(found) == 2
    for pair in found:
        assert isinstance(pair, PairAnswer)
        assert pair.producer.name == "d"
        assert pair.outcome != "apart"
    (inside,) = answers(done, "jit(f)/softmax/neg", "softmax/exp")
    assert isinstance(inside, PairAnswer)
    assert inside.outcome == "fused"


def test_all_names_of_one_module() -> None:
    module = parse_module(TEXT)
    assert [i.name for i in matching(module, "%d")] == ["d"]
    assert [i.name for i in matching(module, "softmax")] == ["n", "e", "d"]
    assert [i.name for i in matching(module, "model.py:9")] == ["s", "c"]


# ------------------------------------------------------------ a dump directory


def why(hlofuse: Run, dump: Path, *names: str) -> dict[str, Any]:
    result = hlofuse("why", dump, *names, "--device", "h100_sxm", "--format", "json")
    assert result.status == 0, result.err
    found: dict[str, Any] = json.loads(result.out)
    return found


def test_the_name_that_a_profiler_shows(gpt2_whole: Path, hlofuse: Run) -> None:
    found = why(hlofuse, gpt2_whole, "loop_add_fusion")
    assert found["instruction"]["name"] == "loop_add_fusion"
    assert found["instruction"]["input_name"] == "fusion.27"
    assert found["instruction"]["source"].startswith("programs.py:305")
    assert found["fate"] == "kernel"


def test_a_line_of_several_kernels(gpt2_whole: Path, hlofuse: Run) -> None:
    found = why(hlofuse, gpt2_whole, "programs.py:305")
    assert found["about"] == "several"
    names = [a["instruction"]["name"] for a in found["answers"]]
    assert {"loop_add_fusion", "loop_multiply_fusion"} <= set(names)
    assert all(a["fate"] == "kernel" for a in found["answers"])
    out = hlofuse("why", gpt2_whole, "programs.py:305", "--device", "h100_sxm").out
    assert "programs.py:305: operations in 4 of 15 kernels" in out
    markdown = hlofuse("why", gpt2_whole, "programs.py:305", "--device", "h100_sxm", "--format", "markdown")
    assert "4 of 15 kernels" in markdown.out


def test_many_answers_are_cut_in_text_only(gpt2_whole: Path, hlofuse: Run) -> None:
    arguments = ["why", gpt2_whole, "jit(gpt2_block)", "--device", "h100_sxm"]
    out = hlofuse(*arguments).out
    assert "more (--limit 0 shows all)" in out
    assert "more (--limit 0 shows all)" not in hlofuse(*arguments, "--limit", 0).out
    assert len(why(hlofuse, gpt2_whole, "jit(gpt2_block)")["answers"]) == 15


def test_a_name_of_the_module_before_optimizations(gpt2_whole: Path, hlofuse: Run) -> None:
    """It lies next to the dump; XLA numbers what stands for it otherwise than the replay does."""
    found = why(hlofuse, gpt2_whole, "div.7")
    assert [c["pass"] for c in found["before_fusion"]][:2] == ["call-inliner", "algsimp"]
    assert found["before_fusion"][-1]["by"] == found["instruction"]["input_name"]
    assert found["holder"]["name"].startswith("triton_softmax")


def test_a_copy_that_was_added_after_fusion(gpt2_whole: Path, tmp_path: Path, hlofuse: Run) -> None:
    for file in gpt2_whole.iterdir():
        text = file.read_text()
        if "gpu_after_optimizations" in file.name:
            text = text.replace(
                "  ROOT %loop_add_fusion =",
                "  %copy.99 = f32[4,64,128]{2,1,0} copy(%xs_1_.1)\n  ROOT %loop_add_fusion =",
            )
        (tmp_path / file.name).write_text(text)
    found = why(hlofuse, tmp_path, "copy.99")
    assert (found["fate"], found["copies"]) == ("added", "xs_1_.1")
    out = hlofuse("why", tmp_path, "copy.99", "--device", "h100_sxm").out
    assert ", added by a pass after fusion; it copies xs_1_.1." in out


def test_trace_op_and_render_take_the_same_names(gpt2_whole: Path, hlofuse: Run) -> None:
    out = hlofuse("trace-op", gpt2_whole, "jit(gpt2_block)/tanh").out
    assert "final: in loop_multiply_fusion" in out
    for name in ("loop_multiply_fusion", "jit(gpt2_block)/tanh"):
        arguments = ["--focus", name, "--device", "h100_sxm", "-o", "-"]
        result = hlofuse("render", gpt2_whole, *arguments)
        assert "fusion.21" in result.out, result.err
