"""What a note says of passes that are not repeated, and programs that only the partitioner can lower."""

from __future__ import annotations

from collections import Counter

import pytest

from hlofuse.compilation import Compilation, replay_config
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.control_flow.annotations import ShardingRemover
from hlofuse.passes.random import RngExpander
from hlofuse.pipelines.stage import Stage
from hlofuse.reports.common.head import lowering_note
from hlofuse.trace import Recorder

from ..running import lowered

ROUNDED = """HloModule m
ENTRY e {
  a = f32[4,4]{1,0} parameter(0)
  x = u32[4,4]{1,0} parameter(1)
  b = bf16[4,4]{1,0} stochastic-convert(a, x)
  c = bf16[4,4]{1,0} stochastic-convert(a, x)
  ROOT r = bf16[4,4]{1,0} add(b, c)
}
"""
PLAIN = ROUNDED.replace("stochastic-convert(a, x)", "convert(a)")
BY_HAND = """HloModule m, num_partitions=8
ENTRY e {
  a = f32[32,784]{1,0} parameter(0)
  b = f32[32,98]{1,0} custom-call(a), custom_call_target="SPMDFullToShardShape", sharding={manual}
  ROOT r = f32[32,784]{1,0} custom-call(b), custom_call_target="SPMDShardToFullShape", sharding={replicated}
}
"""
RANDOM = """HloModule m
ENTRY e {
  z = f32[] constant(0)
  o = f32[] constant(1)
  hz = f16[] constant(0)
  ho = f16[] constant(1)
  u = f32[5]{0} rng(z, o), distribution=rng_uniform
  n = f16[6,5]{1,0} rng(hz, ho), distribution=rng_normal
  ROOT t = (f32[5]{0}, f16[6,5]{1,0}) tuple(u, n)
}
"""


def note(text: str) -> str:
    return lowering_note(Compilation.of(parse_module(text), Stage.BEFORE, replay_config("cpu")))


def test_a_note_counts_what_passes_that_are_not_repeated_would_work_on() -> None:
    assert "Not replayed: stochastic_convert_decomposer (2 stochastic-convert)." in note(ROUNDED)
    assert lowered(parse_module(ROUNDED), "cpu").not_repeated == {
        "stochastic_convert_decomposer": Counter({"stochastic-convert": 2})
    }


def test_a_note_says_that_all_passes_were_repeated_where_none_had_more_to_do() -> None:
    assert "The passes before fusion were replayed first, as in XLA 0.11.1." in note(PLAIN)
    assert "Not replayed" not in note(PLAIN)


def test_a_program_partitioned_by_hand_is_refused_before_the_partitioner() -> None:
    with pytest.raises(HlofuseError, match="partitioned manually over 8 devices"):
        lowered(parse_module(BY_HAND), "cpu")


def test_sharding_remover_leaves_calls_that_change_a_shape() -> None:
    module, recorder = parse_module(BY_HAND), Recorder()
    assert not ShardingRemover().run(module, recorder)
    assert [s.instruction for s in recorder.left_alone] == ["r", "b"]


def test_random_numbers_call_their_generators_with_a_state_each() -> None:
    module = parse_module(RANDOM)
    assert RngExpander().run(module, Recorder())
    found = Counter(i.opcode for i in module.entry)
    assert found["rng"] == 0
    assert found["call"] == found["rng-get-and-update-state"] == 2
    assert found["convert"] == 3  # the operands to f32 and the numbers back
