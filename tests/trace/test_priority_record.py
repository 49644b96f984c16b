"""XLA's record of PriorityFusion, read and followed."""

from __future__ import annotations

from hlofuse.compilation import CompilationInput, compile
from hlofuse.ir import parse_module
from hlofuse.passes.fusion.priority_fusion.observers import RecordedOrder
from hlofuse.trace.priority_record import (
    FusionStep,
    IneligibleStep,
    PriorityRecord,
    PriorityStep,
    read_priority_record,
)

RECORD = """gpu_device_info {
  core_count: 132
}
fusion_steps {
  update_priority {
    producer_name: "neg"
    consumer_names: "abs"
    consumer_names: "add"
    us_fused: 1.25
    us_unfused: inf
  }
}
fusion_steps {
  producer_ineligible {
    producer_name: "abs"
    reason: "a \\"quoted\\" text\\nwith \\303\\251"
  }
}
fusion_steps {
  fusion {
    fusion_name: "fusion"
    producer_name: "neg"
    consumer_name: "abs"
  }
}
"""

MODULE = """HloModule m

ENTRY %main (x: f32[4096]) -> f32[4096] {
  %x = f32[4096]{0} parameter(0)
  %neg = f32[4096]{0} negate(%x)
  ROOT %abs = f32[4096]{0} abs(%neg)
}
"""


def test_the_three_kinds_of_steps() -> None:
    priority, refusal, fusion = read_priority_record(RECORD).steps
    assert priority == PriorityStep("neg", ("abs", "add"), 1.25, float("inf"))
    assert refusal == IneligibleStep("abs", 'a "quoted" text\nwith é')
    assert fusion == FusionStep("fusion", "neg", "abs")


def followed(record: PriorityRecord) -> RecordedOrder:
    recorded_order = compile(
        CompilationInput(parse_module(MODULE), record=record), "gpu", device="h100_sxm"
    ).recorded_order
    assert recorded_order is not None
    recorded_order.finish()
    return recorded_order


def own_record() -> PriorityRecord:
    events = compile(parse_module(MODULE), "gpu", device="h100_sxm").events
    first = next(e for e in events if e.event == "priority")
    assert first.producer is not None
    assert first.us_fused is not None
    assert first.us_unfused is not None
    return PriorityRecord(
        [
            PriorityStep(first.producer, first.consumers, first.us_fused, first.us_unfused),
            FusionStep("fusion.7", "neg", "abs"),
            IneligibleStep("fusion.7", "No users to fuse"),
        ]
    )


def test_a_record_that_is_ours_is_agreed_with() -> None:
    recorded_order = followed(own_record())
    assert recorded_order.disagreements == []
    assert recorded_order.agreed == recorded_order.total == 3


def test_what_differs_is_named() -> None:
    record = own_record()
    priority, fusion, _ = record.steps
    assert isinstance(priority, PriorityStep)
    wrong = PriorityStep(priority.producer, priority.consumers, priority.us_fused * 2, priority.us_unfused)
    recorded_order = followed(PriorityRecord([wrong, fusion, IneligibleStep("fusion.7", "another reason")]))
    assert [(d.kind, d.step, d.producer) for d in recorded_order.disagreements] == [
        ("priority", 0, "neg"),
        ("refusal", 1, "fusion.7"),
    ]


def test_what_xla_did_besides_is_named() -> None:
    record = own_record()
    record.steps.append(FusionStep("fusion.8", "fusion.7", "x"))
    assert [d.kind for d in followed(record).disagreements] == ["fusion"]
