"""Estimates told operand by operand add up to the estimates themselves."""

from __future__ import annotations

import pytest

from hlofuse.cost.gpu.backend_config import is_generic_triton_fusion
from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.model import KernelModel, operand_reads, pair_operand_reads
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE
from ...fixtures import Case
from ..records import device_of
from .first_priorities import COMPACT, load_compact


@pytest.mark.parametrize("case", COMPACT, ids=str)
def test_reads_add_up(case: Case) -> None:
    module, priorities = load_compact(case)
    model = KernelModel(device_of(case), RELEASE)
    pairs = 0
    for record in priorities.values():
        producer = module.find(record.producer)
        assert producer is not None
        for consumer in producer.users:
            if is_generic_triton_fusion(producer) or is_generic_triton_fusion(consumer):
                continue
            estimate, reads = (
                model.pair_time(producer, consumer),
                pair_operand_reads(model, producer, consumer),
            )
            assert sum(r.ticks for r in reads) == estimate.read
            assert sum(r.read for r in reads) == estimate.bytes_read
            alone = operand_reads(model, producer)
            assert sum(r.ticks for r in alone) == model.run_time(producer).read
            pairs += 1
    assert pairs


def test_a_broadcast_operand_is_read_once_for_each_element() -> None:
    module = parse_module(
        """HloModule m

ENTRY %main (w: f32[1000]) -> f32[64,1000] {
  %w = f32[1000]{0} parameter(0)
  ROOT %b = f32[64,1000]{1,0} broadcast(%w), dimensions={1}
}
"""
    )
    (read,) = operand_reads(KernelModel(load_device("v100"), RELEASE), module.entry.root)
    assert (read.size, read.read) == (4000, 256_000)
