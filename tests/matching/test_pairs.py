"""The matcher: strictnesses of the key, anchors, and pairs of final kernels."""

from __future__ import annotations

import pytest

from hlofuse.ir import Module, parse_module
from hlofuse.matching.kernels import KernelKeys, contents, outline
from hlofuse.matching.key import ANNOTATIONS, Keys, Strictness
from hlofuse.matching.pairs import match
from ..fixtures import companion_texts
from ..running import find

TEXTS = companion_texts(__file__)
GATHER = (
    "f32[2]{0} all-gather(p), channel_id=1, replica_groups={}, dimensions={0}, sharding={replicated},"
    ' backend_config={"a":1}, metadata={op_name="here"}'
)


def module(operation: str) -> Module:
    return parse_module(
        f"HloModule m\nENTRY e {{\n p = f32[2]{{0}} parameter(0)\n ROOT r = {operation}\n}}\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "ignored_from"),
    [
        ("here", "there", Strictness.WRITTEN),
        ("backend_config={", 'origin={{"p"}}, backend_config={', Strictness.PROGRAM),
        ("sharding={replicated}", "sharding={maximal device=0}", Strictness.IDENTICAL),
        ('{"a":1}', '{"a":2}', Strictness.COMPUTED),
        ("channel_id=1", "channel_id=2", Strictness.OPERATION),
        ("dimensions={0}", "dimensions={1}", None),
    ],
)
def test_an_attribute_counts_up_to_its_strictness(
    old: str, new: str, ignored_from: Strictness | None
) -> None:
    for strictness in Strictness:
        keys = Keys(strictness)
        texts = [keys.attributes(module(x).entry.root.attributes) for x in (GATHER, GATHER.replace(old, new))]
        expected = ignored_from is not None and strictness >= ignored_from
        assert (texts[0] == texts[1]) is expected, strictness


def test_annotations_are_what_an_operation_does_not_depend_on() -> None:
    assert {"backend_config", "channel_id", "sharding", "origin"} <= ANNOTATIONS
    assert not {"metadata", "calls", "control-predecessors", "kind"} & ANNOTATIONS


def test_defaults_of_a_configuration_do_not_count() -> None:
    keys = Keys(Strictness.WRITTEN)
    texts = [
        keys.attributes(module(GATHER.replace('{"a":1}', config)).entry.root.attributes)
        for config in ('{"a":1}', '{"a":1,"b":"0","c":false}', '{"a":1,"b":"1"}')
    ]
    assert texts[0] == texts[1] != texts[2]


def test_the_workspace_of_a_library_does_not_count() -> None:
    keys = KernelKeys(Strictness.COMPUTED)
    equal = ["f32[2], s8[16]", "f32[2], u8[32]"]
    other = ["f32[3], s8[16]", "f32[2], s8[4,4]", "f32[2], f32[16]", "f32[2], s8[8], s8[16]", "s8[16]"]
    calls = [f'({shapes}) custom-call(p), custom_call_target="t"' for shapes in equal + other]
    found = [keys.kernel(module(call).entry.root) for call in calls]
    assert found[0] == found[1]
    assert len({*found}) == 1 + len(other)


EQUAL_OPERATIONS = TEXTS["equal_operations"]


def test_anchors_go_before_structure() -> None:
    before, after = parse_module(EQUAL_OPERATIONS), parse_module(EQUAL_OPERATIONS)
    old, new = ({x.name: x for x in m.instructions()} for m in (before, after))

    def partner(*anchors: tuple[str, str]) -> str:
        pairs = match(before, after, [(old[x], new[y]) for x, y in anchors])
        return pairs.after_of(old["a"])[0].instruction.name

    assert partner() == "a"
    assert partner(("a", "b")) == "b"
    assert partner(("a", "b"), ("a", "a")) == "b"


@pytest.mark.parametrize(("old", "new"), [("sin", "sin"), ("line=5", "line=6"), ("/sin", "/tan")])
def test_an_operation_far_from_any_pair_is_found_by_its_line(old: str, new: str) -> None:
    """Without an equal neighbour the kind of operation, the framework's name and the source line agree."""
    other = TEXTS["far"].replace("exponential", "cosine").replace("tanh", "log").replace(old, new)
    before = parse_module(TEXTS["far"])
    found = match(before, parse_module(other), []).after_of(find(before, "s"))
    assert bool(found) is (old == new)


def test_a_kernel_with_one_counterpart_goes_first() -> None:
    """BEFORE computes the sine in two kernels, which are left to the cosine and the tangent."""
    found = match(parse_module(TEXTS["twice"]), parse_module(TEXTS["once"]), []).one_to_one
    names = {new.name: old.name for new, old in found.items()}
    assert (names["cosine"], names["tanh"], names.get("sine")) == ("first", "second", None)


def test_the_loosest_keys() -> None:
    one, wide = (module(x).entry.root for x in ("f32[2]{0} sine(p)", "f32[1,2]{1,0} sine(p)"))
    assert outline(one) == outline(wide)
    assert contents(one) != contents(wide)
