"""`hlofuse upgrade`: two releases on one program, and which change makes the difference."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from hlofuse.ir.texts import texts
from hlofuse.pipelines.differences import differences, groups
from hlofuse.releases import NAMES, behaviours, release_of
from hlofuse.releases import named as release_module
from ..running import Run

CONCATENATE = """HloModule jit_join, is_scheduled=false

ENTRY %main (a: f32[64,8], b: f32[64,8]) -> f32[64,16] {
  %a = f32[64,8]{1,0} parameter(0)
  %b = f32[64,8]{1,0} parameter(1)
  %c = f32[64,16]{1,0} concatenate(%a, %b), dimensions={1}
  ROOT %n = f32[64,16]{1,0} negate(%c)
}
"""
"""XLA 0.12.0.1 leaves the concatenate alone: 64 bytes along the minor dimension, 4,096 in all. 0.11.1 fuses
it, as it has fewer than 128 elements there."""


def test_the_change_that_makes_the_difference(hlofuse: Run, tmp_path: Path) -> None:
    file = tmp_path / "join.hlo"
    file.write_text(CONCATENATE)
    call = ("upgrade", file, "--target", "cpu", "--from", "0.11.1", "--to", "0.12.0.1", "--assume-input")
    result = hlofuse(*call, "--format", "json")
    assert result.status == 1
    document = json.loads(result.out)
    (module,) = document["modules"]
    assert (module["totals_from"]["kernels"], module["totals_to"]["kernels"]) == (1, 2)
    assert [c["totals"]["kernels"] for c in module["causes"]] == [2]
    (edge,) = module["flipped"]
    assert (edge["producer"]["name"], edge["consumer"]["name"], edge["rule"]) == ("c", "n", "CPU006")
    text = hlofuse(*call, columns=100).out
    assert "From XLA 0.11.1 to 0.12.0.1: 1 → 2 kernels" in text
    assert "fused on XLA 0.11.1, not fused on XLA 0.12.0.1" in text
    assert "1 → 2 kernels" in hlofuse(*call, "--format", "markdown").out


def test_the_same_program_as_the_other_release_compiled_it(hlofuse: Run, tmp_path: Path) -> None:
    old, new = tmp_path / "old.hlo", tmp_path / "new.hlo"
    old.write_text(CONCATENATE)
    new.write_text(CONCATENATE.replace("negate(%c)", 'custom-call(%c), custom_call_target="k"'))
    call = (old, new, "--target", "cpu", "--from", "0.10.2", "--to", "0.11.1", "--assume-input")
    result = hlofuse("upgrade", *call, columns=120)
    assert "Fusion passes alone: 1 kernel; passes before fusion: 1 → 2." in result.out


def test_nothing_differs_between_a_release_and_itself(hlofuse: Run, samples: Path) -> None:
    call = (samples / "cpu", "--from", "0.11.1", "--to", "0.11.1")
    result = hlofuse("upgrade", *call)
    assert result.status == 0
    assert "0 of" in result.out
    assert "give --from and --to" in hlofuse("upgrade", *call, "--xla", "0.8.3").err


@pytest.mark.parametrize("given", [[], ["--from", "0.12.0.1"], ["--from", "auto"]])
def test_without_another_release_there_is_nothing_to_compare(
    hlofuse: Run, samples: Path, given: list[str]
) -> None:
    result = hlofuse("upgrade", samples / "cpu" / "softmax", *given)
    assert (result.status, result.out) == (2, "")
    assert "Nothing to compare: give --from or --to, one of 0.4.35, " in result.err


@pytest.mark.parametrize("release", ["0.13", "0.99", "1.0.0", "0.4.13", "newest"])
@pytest.mark.parametrize("flag", ["--from", "--to"])
def test_an_unknown_release_is_refused_with_those_there_are(
    hlofuse: Run, samples: Path, flag: str, release: str
) -> None:
    result = hlofuse("upgrade", samples / "cpu" / "softmax", flag, release)
    assert (result.status, result.out) == (2, "")
    assert f"{flag} {release}: no such release; there are 0.4.35, " in result.err
    assert NAMES[-1] in result.err


def test_a_release_between_known_ones_is_the_nearest(hlofuse: Run, samples: Path) -> None:
    for release in ("0.8.0", "0.12.5"):
        result = hlofuse("upgrade", samples / "cpu" / "softmax", "--to", release)
        assert result.status in (0, 1)
        assert f"{release} is replayed as" in result.err


def test_a_second_capture_says_the_release(hlofuse: Run, samples: Path) -> None:
    sides = (samples / "cpu" / "softmax", samples / "cpu" / "gpt2_block")
    found = json.loads(hlofuse("upgrade", *sides, "--format", "json").out)
    assert (found["from"], found["to"]) == ("0.11.1", "0.11.1")
    result = hlofuse("upgrade", *sides)
    assert "Two compilations by XLA 0.11.1: " in result.out
    assert "From XLA" not in result.out


def test_arguments_are_those_of_a_function(hlofuse: Run, samples: Path) -> None:
    result = hlofuse("upgrade", samples / "cpu" / "softmax", "--to", "0.12", "--args", "f32[8]")
    assert result.status == 2
    assert "need script.py:function" in result.err


def test_each_difference_can_be_turned() -> None:
    for target in ("cpu", "gpu"):
        for old, new in pairwise(NAMES):
            for d in differences(target, (old, new)):
                flipped = d.flipped_in(release_of(old), release_of(new))
                assert d.value_in(flipped) == d.value_in(release_of(new)), (d.name, old, new)
        assert sum(map(len, groups(target, NAMES))) == len(NAMES)


def test_every_behaviour_has_its_texts() -> None:
    """One table of `behaviours.toml` for each field of `Release`, with what it is and XLA's place of it."""
    every = {**behaviours(), **behaviours(around=True)}
    for behaviour in every.values():
        assert len(behaviour.text) > 8
        assert behaviour.source
    file = Path(release_module.__file__).with_name("behaviours.toml")
    assert list(texts(file)) == list(every)
