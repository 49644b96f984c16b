"""Names at the fusion input, from before optimizations: those of jaxlib 0.11.1 on an H100."""

from __future__ import annotations

import pytest

from hlofuse.cost.gpu.device import load_device
from hlofuse.inputs.ordered import in_creation_order
from hlofuse.ir import parse_module
from hlofuse.ir.computation_order import order_of_front_end
from hlofuse.ir.graph import Computation, Instruction, Module
from ..fixtures import companion_texts
from ..running import lowered

TEXTS = companion_texts(__file__)

CONVOLUTION = TEXTS["convolution"]
SORT = TEXTS["sort"]
FFT = TEXTS["fft"]
TOP = TEXTS["top"]
LOOP = TEXTS["loop"]
UNREAD = TEXTS["unread"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        # The call is cloned and named twice before it is laid out otherwise.
        (CONVOLUTION, ["cudnn-conv-bias-activation.3", "transpose.1"]),
        # Another target is another name.
        (SORT, ["custom-call.1", "e.1.0"]),
        (FFT, ["e.1.0", "fft.1.0", "n.1.0"]),
        (TOP, ["e.1.0", "iota.1.0", "n.1.0", "slice.2.0", "sort.1.0"]),
        (LOOP, ["constant.8.0", "while.1"]),
    ],
)
def test_names_at_fusion(text: str, names: list[str]) -> None:
    entry = lowered_text(text).entry
    assert (
        sorted(i.name for i in entry if i.opcode not in ("parameter", "get-tuple-element", "tuple")) == names
    )


def test_constants_that_loops_take_in_are_named_as_clones() -> None:
    names = {i.name for i in lowered_text(LOOP).instructions() if i.opcode == "constant"}
    assert names >= {"constant.9..sunk.1.0", "constant.13.0", "constant.14.0"}


def test_a_comparator_of_xlas_builder_has_numbers() -> None:
    comparator = lowered_text(TOP).entry.root.operands[0].operands[0].operands[0].called_computations[0]
    assert [p.name for p in comparator.parameters] == ["p.0.lhs.1", "p.0.rhs.1", "p.1.lhs.1", "p.1.rhs.1"]


def test_results_have_the_numbers_behind_their_operation() -> None:
    module = parse_module(UNREAD)
    in_creation_order(module, None)
    assert [i.name for i in module.entry if i.opcode == "get-tuple-element"] == [
        "s.5",
        "s.6",
        "none.1_0",
        "none.1_1",
    ]


def lowered_text(text: str) -> Module:
    module = parse_module(text)
    in_creation_order(module, None)
    return lowered(module, "gpu", load_device("h100_sxm")).module


TWO_SUMS = TEXTS["two_sums"]


def test_of_equal_computations_the_first_that_the_front_end_made_stays() -> None:
    """Not the first that the text shows."""
    sums = lowered_text(TWO_SUMS).entry.root.operands
    assert [x.called_computations[0].name for x in sums] == ["region_0.1.clone", "region_0.1"]


def test_a_computation_that_calls_another_comes_last() -> None:
    module = parse_module(TWO_SUMS)
    first, second, entry = module.computations
    order = module.computation_order = order_of_front_end(module)
    assert order.post_order() == [first, second, entry]
    call = Instruction(
        "call", entry.root.operands[0].shape, "call", first.parameters, called=[("to_apply", second)]
    )
    first.add_instruction(call)
    # The entry calls it and goes on.
    assert order.post_order() == [second, first, entry]
    copy = module.add_computation(Computation("copy"))
    assert order.post_order() == [second, first, entry, copy]
    module.remove_computation(copy)
    assert module.computation_post_order() == [second, first, entry]
    assert module.printed_order() == [second, first, entry]
