"""Terms of the 0.4.35 model against those that XLA logged while it decided: every time to the tick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from hlofuse.compilation import compile
from hlofuse.cost.gpu.merging import MergeTimes, MergingModel
from hlofuse.ir import parse_module
from hlofuse.ir.graph import Instruction
from ...fixtures import texts_of

DATA = Path(__file__).parents[2] / "data" / "gpu-legacy.tar.xz"


def duration(ticks: int) -> str:
    """As `absl::FormatDuration` writes it."""
    for size, unit, digits in (
        (4_000_000_000, "s", 11),
        (4_000_000, "ms", 6),
        (4_000, "us", 3),
        (4, "ns", 0),
    ):
        if ticks >= size or unit == "ns":
            whole, rest = divmod(ticks, size)
            if not ticks:
                return "0"
            fraction = f"{rest * 10 ** (digits + 2) // size:0{digits + 2}d}".rstrip("0")
            return f"{whole}.{fraction}{unit}" if fraction else f"{whole}{unit}"
    raise AssertionError(ticks)


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines XLA would log about merges, in order, filled while a replay runs."""
    lines: list[str] = []
    original = MergingModel.merge_times

    def merge_times(
        model: MergingModel,
        producer: Instruction,
        consumers: Sequence[Instruction],
        *,
        multi_output: bool = False,
    ) -> MergeTimes:
        times = original(model, producer, consumers, multi_output=multi_output)
        first = model.run_time(producer)
        lines.append(
            f"Runtime data for HLO: {producer.name} blocks: {{{first.launch.blocks}, 1, 1}}, "
            f"threads/block: {{{first.launch.threads}, 1, 1}} EstimateRunTimeData{{ "
            f"flops: {first.flops} bytes_read: {first.bytes_read} bytes_written: {first.bytes_written} "
            f"read_time: {duration(first.read)} write_time: {duration(first.write)} "
            f"compute_time: {duration(first.compute)} exec_time: {duration(first.ticks)} }}"
        )
        lines.extend(f"Read time unfused: {duration(c.read_unfused)}" for c in times.consumers)
        for c in times.consumers:
            lines.append(f"Compute time by consumer: {duration(c.compute)}")
            lines.append(f"Input access time by consumer: {duration(c.read_fused)}")
        return times

    def multi_output_times(
        model: MergingModel, producer: Instruction, consumer: Instruction
    ) -> tuple[int, int]:
        times = merge_times(model, producer, [consumer], multi_output=True)
        return times.fused, times.unfused

    monkeypatch.setattr(MergingModel, "merge_times", merge_times)
    # Where the model is compiled, it does not find its own method replaced.
    monkeypatch.setattr(MergingModel, "multi_output_times", multi_output_times)
    return lines


def test_every_term_is_xlas(logged: list[str]) -> None:
    wrong: list[str] = []
    compared = 0
    for name, case in sorted(texts_of(DATA).items()):
        xla = case["costs.log"].splitlines()
        if not xla:
            continue
        logged.clear()
        compile(parse_module(case["before.hlo"]), "gpu-legacy", device=name.partition("/")[0])
        compared += len(xla)
        # Users may stand in another order, and their terms with them.
        wrong += [f"{name}: {line}" for line in (Counter(xla) - Counter(logged))]
    assert compared > 3000
    assert wrong == [], compared
