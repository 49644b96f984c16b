"""`why`: one instruction, a pair, fusions made on the way, names that do not exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import hlofuse
from hlofuse.compilation import Compilation, compile
from hlofuse.inputs import load
from hlofuse.ir import parse_module
from hlofuse.ir.errors import HlofuseError
from hlofuse.reports.common.facts import Facts
from hlofuse.reports.why import PairAnswer, Story
from hlofuse.reports.why.story import answers, story_of
from ..fixtures import companion_texts
from ..running import Golden, Run

TEXTS = companion_texts(__file__)


@pytest.fixture(scope="module")
def gpt2() -> Compilation:
    return compile(load(Path(__file__).parents[2] / "samples" / "cpu" / "gpt2_block"))


def pair(run: Compilation, a: str, b: str) -> PairAnswer:
    answer = answers(run, a, b)[0]
    assert isinstance(answer, PairAnswer)
    return answer


def story(run: Compilation, name: str) -> Story:
    answer = answers(run, name)[0]
    assert isinstance(answer, Story)
    return answer


@pytest.mark.parametrize(
    ("label", "names"),
    [
        ("refused", ["add.9", "bitcast_add_fusion"]),
        ("fused", ["mul.29", "bitcast.9"]),
        ("apart", ["mul.28", "ynn_fusion"]),
        ("story", ["add.9"]),
        ("copied", ["broadcast.10"]),
        ("fusion", ["multiply_bitcast_fusion"]),
        ("lines", ["programs.py:305", "programs.py:305"]),
    ],
)
def test_text(
    hlofuse: Run, golden: Golden, samples: Path, monkeypatch: pytest.MonkeyPatch, label: str, names: list[str]
) -> None:
    monkeypatch.chdir(samples / "cpu")
    result = hlofuse("why", "gpt2_block/before.hlo", *names)
    assert (result.status, result.err) == (0, "")
    golden(f"why/{label}.txt", result.out)
    assert all(len(line) <= 80 for line in result.out.split("\n"))


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_every_instruction_and_pair_of_a_softmax(samples: Path, golden: Golden, backend: str) -> None:
    report = hlofuse.open(samples / backend / "softmax")
    names: list[tuple[str, ...]] = [(x.name,) for x in report.loaded.module.entry]
    names += [(o.name, x.name) for x in report.loaded.module.entry for o in dict.fromkeys(x.operands)]
    texts = [report.why(*given).to_text(100).splitlines()[:-1] for given in names]
    shown = [line for given, text in zip(names, texts, strict=True) for line in (" ".join(given), *text)]
    golden(f"why/softmax_{backend}.txt", "\n".join(shown))


@pytest.mark.parametrize("names", [["add.9", "bitcast_add_fusion"], ["add.9"]])
def test_markdown_and_json(
    hlofuse: Run, golden: Golden, samples: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    monkeypatch.chdir(samples / "cpu")
    label = "pair" if len(names) == 2 else "story"
    result = hlofuse("why", "gpt2_block/before.hlo", *names, "--format", "markdown")
    golden(f"why/{label}.md", result.out)
    result = hlofuse("why", "gpt2_block/before.hlo", *names, "--format", "json")
    golden(f"why/{label}.json", result.out)
    assert json.loads(result.out)["schema"] == "hlofuse.why/3"


def test_a_percent_sign_is_no_part_of_a_name(gpt2: Compilation) -> None:
    assert answers(gpt2, "%add.9") == answers(gpt2, "add.9")


def test_a_pair_is_understood_either_way_round(gpt2: Compilation) -> None:
    there, back = pair(gpt2, "add.9", "bitcast_add_fusion"), pair(gpt2, "bitcast_add_fusion", "add.9")
    assert not there.swapped
    assert back.swapped
    assert there.settled_by == back.settled_by


def test_the_consumer_may_be_named_by_what_it_became(gpt2: Compilation) -> None:
    """add.13 became bitcast_add_fusion: the same pair under three names."""
    by_input = pair(gpt2, "add.9", "add.13")
    by_fusion = pair(gpt2, "add.9", "bitcast_add_fusion")
    assert by_input.outcome == by_fusion.outcome == "refused"
    assert by_input.settled_by == by_fusion.settled_by


def test_repeated_refusals_are_one_decision(gpt2: Compilation) -> None:
    stories = [story(gpt2, i.name) for i in gpt2.before.entry]
    decisions = [d for s in stories for d in s.as_producer if len(d.steps) > 1]
    assert decisions
    assert all(list(d.steps) == sorted(set(d.steps)) for d in decisions)


def test_what_can_never_go_in_is_refused_to_a_growing_fusion_once(gpt2: Compilation) -> None:
    pairs = [
        (e.producer, e.consumer, e.rule)
        for e in gpt2.events
        if e.event == "ineligible" and e.rule in ("IF001", "IF002", "CPU005", "CPU007")
    ]
    assert len(pairs) > 30
    assert len(set(pairs)) == len(pairs)


def test_the_fate_of_each_kind_of_instruction(gpt2: Compilation) -> None:
    assert story(gpt2, "mul.28").fate == "fused"
    assert story(gpt2, "multiply_bitcast_fusion").fate == "kernel"
    assert story(gpt2, "ynn_fusion").fate == "kernel"
    assert story(gpt2, "xs_1_.1").fate == "no kernel"
    assert len(story(gpt2, "broadcast.10").kernels) == 6


def test_every_name_has_a_story(gpt2: Compilation) -> None:
    for instruction in (*gpt2.before.instructions(), *gpt2.after.instructions()):
        assert story(gpt2, instruction.name).fate


def test_every_edge_has_an_answer(gpt2: Compilation) -> None:
    for consumer in gpt2.before.entry:
        for producer in consumer.operands:
            found = pair(gpt2, producer.name, consumer.name)
            assert found.outcome in ("fused", "refused", "not considered")
            if found.outcome == "refused":
                assert found.settled_by is not None
                assert not found.shared


def test_parts_of_a_library_fusion_stand_for_it(gpt2: Compilation, hlofuse: Run, samples: Path) -> None:
    """Whoever reads the dump meets the dot inside the fusion first."""
    holder = gpt2.before.entry.find("ynn_fusion")
    assert holder is not None
    root = holder.fused_computation.root
    inside = story(gpt2, root.name)
    assert (inside.fate, inside.holder and inside.holder.name) == ("inside", "ynn_fusion")
    found = pair(gpt2, root.name, "bitcast_add_fusion")
    assert found.inside == ((root.name, "ynn_fusion"),)
    assert found.settled_by == pair(gpt2, "ynn_fusion", "bitcast_add_fusion").settled_by
    both = pair(gpt2, root.name, root.operands[0].name)
    assert both.outcome == "not considered"
    for form in ("text", "markdown"):
        out = hlofuse("why", samples / "cpu" / "gpt2_block", root.name, "--format", form).out
        assert "is inside ynn" in out.replace("\\", "")


def test_the_function_of_a_reduce_stands_for_the_reduce() -> None:
    run = compile(parse_module(TEXTS["function_reduce_stands"]))
    found = story(run, "s")
    assert found.fate == "inside"
    assert found.holder is not None
    assert found.holder.name == "r"
    assert pair(run, "p", "s").consumer.name == "r"


def test_equal_kernels_of_a_line_are_one_answer(hlofuse: Run, tmp_path: Path) -> None:
    (file := tmp_path / "m.hlo").write_text(TEXTS["equal_kernels_of_a_line"])
    for details, more in (((), [" 1 more like it.", ""]), (("--details",), [""] * 3)):
        out = hlofuse("why", file, "m.py:3", "--device", "h100_sxm", *details).out
        assert re.findall("own sort.(.*)", out) == more


def test_a_copy_inside_a_fusion_made_on_the_way(gpt2: Compilation) -> None:
    cached = {i.name for i in gpt2.before.instructions()}
    copies = [
        i
        for f in gpt2.after.entry
        if f.fusion_kind == "kLoop"
        for i in f.fused_computation
        if i.opcode == "parameter" and i.name not in cached
    ]
    assert copies
    assert all(story(gpt2, i.name).fate == "inside" for i in copies)


def test_unknown_names_get_suggestions(gpt2: Compilation, hlofuse: Run, samples: Path) -> None:
    with pytest.raises(
        HlofuseError, match=r"no instruction, op_name or function mul\.281; did you mean mul\.28"
    ):
        answers(gpt2, "mul.281")
    with pytest.raises(HlofuseError, match=r"function _blok; did you mean _block"):
        answers(gpt2, "_blok")
    result = hlofuse("why", samples / "cpu" / "gpt2_block", "add.9", "bitcast_ad_fusion")
    assert (result.status, result.out) == (2, "")
    assert "did you mean" in result.err


def test_all_kernels_of_a_line_of_the_program_have_their_story(gpt2: Compilation) -> None:
    found = answers(gpt2, "programs.py:301")
    stories = [s for s in found if isinstance(s, Story)]
    assert len(stories) == len(found) > 1
    assert "broadcast_select_fusion" in [s.described.name for s in stories]
    assert all(s.fate == "kernel" for s in stories)
    with pytest.raises(HlofuseError, match="and no operation from that source line"):
        answers(gpt2, "programs.py:9999")


def test_a_line_of_one_kernel_stands_for_that(hlofuse: Run, samples: Path) -> None:
    result = hlofuse("why", samples / "cpu" / "gpt2_block", "programs.py:302", "--format", "json")
    assert result.status == 0
    by_line = json.loads(result.out)
    kernel = by_line["instruction"]["name"]
    assert kernel != "programs.py:302"
    result = hlofuse("why", samples / "cpu" / "gpt2_block", kernel, "--format", "json")
    by_name = json.loads(result.out)
    for found in (by_line, by_name):
        for field in ("asked", "meant"):
            del found[field]
    assert by_line == by_name


def test_an_operation_that_stays_for_another_user() -> None:
    run = compile(parse_module(TEXTS["operation_stays_another"]))
    found = pair(run, "n", "a")
    assert found.outcome == "fused"
    assert found.settled_by is not None
    assert found.settled_by.event.duplicated
    # It is computed in the fusion, and once more for the result.
    assert len(story(run, "n").kernels) == 2


def test_the_same_name_twice(gpt2: Compilation) -> None:
    assert pair(gpt2, "add.9", "add.9").outcome == "apart"


def test_a_name_given_twice_is_one_instruction(hlofuse: Run, samples: Path) -> None:
    """It is said, and described once."""
    for form in ("text", "markdown"):
        reported = hlofuse("why", samples / "cpu" / "gpt2_block", "add.9", "add.9", "--format", form).out
        assert "was given twice: give two different instructions, or one." in reported
        assert reported.replace("\\", "").count("f32[4,64,128]") == 1


@pytest.mark.parametrize("sample", ["cpu/softmax", "cpu/gpt2_block", "cartpole/cpu/scan", "tutorial/slow"])
def test_two_kernels_are_apart_from_each_other(samples: Path, sample: str) -> None:
    """A refusal is known on both sides, whichever of the two was created or wrapped later."""
    facts = Facts(compile(load(samples / sample)))
    apart = {name: {place.name for place, _ in story_of(name, facts).apart} for name in facts.launched_after}
    assert any(apart.values())
    assert all(name in apart[other] for name in apart for other in apart[name])
