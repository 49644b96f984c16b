"""Figures kept by structure are those a fresh look at the graph gives."""

from __future__ import annotations

from inspect import isdatadescriptor

import pytest

from hlofuse.analysis.elementwise import is_elementwise
from hlofuse.cost.gpu.backend_config import is_generic_triton_fusion
from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.cost.gpu.summary import Summary
from hlofuse.ir.fusing import append_producer, fuse_in_place_of, merge_fusion
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.rules.gpu_fusible import is_small_constant, may_be_fused
from ...fixtures import Case, companion_texts
from ..records import device_of
from .first_priorities import COMPACT, load_compact

TEXTS = companion_texts(__file__)

V100 = load_device("v100")
_FUSED = frozenset({"broadcast", "reduce", "transpose", "slice", "concatenate", "pad", "reverse", "gather"})

LAYERS = TEXTS["layers"]


def _fuse(model: KernelModel, module: Module, producer: str, consumer: str) -> Instruction:
    p, c = module.find(producer), module.find(consumer)
    assert p is not None
    assert c is not None
    pair = model.pair(p, c)
    fusion = fuse_in_place_of(c, "kLoop")
    if p.opcode == "fusion":
        merge_fusion(fusion, p)
    else:
        append_producer(fusion, p)
    model.add_fusion(fusion, pair)
    if not p.users:
        model.invalidate(p)
        assert p.computation is not None
        p.computation.remove_instruction(p)
    model.invalidate(fusion)
    return fusion


def _figures(summary: Summary) -> dict[str, object]:
    """Everything two ways to the same structure have to agree on."""
    separate: tuple[str, ...] = ("number", "atom", "operands", "reads", "launch", "estimates", "roots")
    separate += ("parameter_uses", "root_utilization")  # numbered in another order
    cached = [name for name, x in vars(Summary).items() if isdatadescriptor(x) and not name.startswith("__")]
    figures = {name: getattr(summary, name) for name in cached if name not in separate}
    count = len(summary.operands)
    figures["common"] = [summary.common_utilization(j, k) for j in range(count) for k in range(j)]
    figures["from root"] = [summary.common_with_root(k) for k in range(count)]
    reached = [[k for k, there in enumerate(r.reached) if there] for r in summary.roots]
    heroes = [(hero and hero.opcode, is_root) for hero, is_root in (r.hero for r in summary.roots)]
    figures["heroes"], figures["reached"] = heroes, reached
    return {name: tuple(x) if isinstance(x, list) else x for name, x in figures.items()}


def test_equal_layers_share_their_figures_and_their_estimates() -> None:
    module, model = parse_module(LAYERS), KernelModel(V100, RELEASE)
    first = _fuse(model, module, "wide.0", "m.0")
    second = _fuse(model, module, "wide.1", "m.1")
    assert model.summary(first) is model.summary(second)
    assert model.run_time(first) is model.run_time(second)
    e0, e1 = module.find("e.0"), module.find("e.1")
    assert e0 is not None
    assert e1 is not None
    assert model.pair_time(first, e0) is model.pair_time(second, e1)


def test_a_fusion_made_in_steps_has_the_figures_of_its_graph() -> None:
    module, model = parse_module(LAYERS), KernelModel(V100, RELEASE)
    fusion = _fuse(model, module, "wide.0", "m.0")
    fusion = _fuse(model, module, fusion.name, "e.0")
    fusion = _fuse(model, module, fusion.name, "s.0")
    fresh = KernelModel(V100, RELEASE)
    assert _figures(model.summary(fusion)) == _figures(fresh.summary(fusion))
    assert model.run_time(fusion) == fresh.run_time(fusion)
    assert [o.name for o in fusion.operands] == ["x", "w"]


@pytest.mark.parametrize("case", COMPACT, ids=str)
def test_figures_of_a_pair_are_those_of_each_of_its_fusions(case: Case) -> None:
    """Fuse whatever XLA rated, as long as it is there, and look at every fusion both ways."""
    module, priorities = load_compact(case)
    model = KernelModel(device_of(case), RELEASE)
    fused = 0
    for record in priorities.values():
        producer = module.find(record.producer)
        if producer is None or producer.is_root or is_generic_triton_fusion(producer):
            continue
        for consumer in list(producer.users):
            if not _may_hold(consumer):
                continue
            fusion = _fuse(model, module, producer.name, consumer.name)
            assert _figures(model.summary(fusion)) == _figures(model.summaries.find(fusion))
            fused += 1
    assert fused


def test_the_launch_of_a_pair_does_not_depend_on_what_was_asked_before() -> None:
    kinds: set[str] = set()
    for case in COMPACT:
        module, priorities = load_compact(case)
        device = device_of(case)
        model = KernelModel(device, RELEASE)
        for record in priorities.values():
            producer = module.find(record.producer)
            if producer is None or producer.is_root or is_generic_triton_fusion(producer):
                continue
            for consumer in filter(_may_hold, list(producer.users)):
                model.launch(consumer)
                together = model.pair_launch(producer, consumer)
                assert together == KernelModel(device, RELEASE).pair_launch(producer, consumer)
                kinds.add(together.kind)
                _fuse(model, module, producer.name, consumer.name)
    assert kinds >= {"loop", "reduction"}


def _may_hold(consumer: Instruction) -> bool:
    if consumer.opcode == "fusion":
        return not is_generic_triton_fusion(consumer) and consumer.fusion_kind != "kCustom"
    return is_elementwise(consumer) or consumer.opcode in _FUSED


def test_a_pair_costs_what_the_fusion_will() -> None:
    module, model = parse_module(LAYERS), KernelModel(V100, RELEASE)
    b, m = module.find("wide.0"), module.find("m.0")
    assert b is not None
    assert m is not None
    pair = model.pair_time(b, m)
    fusion = _fuse(model, module, "wide.0", "m.0")
    alone = model.run_time(fusion)
    assert (pair.flops, pair.launch) == (alone.flops, alone.launch)
    assert pair.bytes_read == alone.bytes_read == 64 * 1000 * 4 * 2
    assert pair.ticks == alone.ticks


def test_the_reduce_decides_the_emitter() -> None:
    module, model = parse_module(LAYERS), KernelModel(V100, RELEASE)
    s, out = module.find("s.1"), module.find("out")
    assert s is not None
    assert out is not None
    assert model.launch(s).kind == "loop"
    assert model.launch(out).kind == "reduction"
    assert model.pair_launch(s, out).kind == "reduction"


def test_a_small_constant_leaves_every_emitter_as_it_is() -> None:
    """Why the last step of PriorityFusion need not ask for the launch of what it makes."""
    kinds: dict[tuple[str, str], int] = {}
    for case in COMPACT:
        module, _ = load_compact(case)
        model = KernelModel(device_of(case), RELEASE)
        for constant in filter(is_small_constant, list(module.instructions())):
            for user in (u for u in constant.users if may_be_fused(u, RELEASE)):
                found = model.launch(user).kind, model.pair_launch(constant, user).kind
                kinds[found] = kinds.get(found, 0) + 1
    assert {before for before, _ in kinds} >= {"loop", "reduction", "concatenate"}
    assert [pair for pair in kinds if pair[0] != pair[1]] == []


def test_invalidate_forgets_pairs_on_both_sides() -> None:
    module, model = parse_module(LAYERS), KernelModel(V100, RELEASE)
    m, e, s = (module.find(n) for n in ("m.0", "e.0", "s.0"))
    assert m is not None
    assert e is not None
    assert s is not None
    model.pair_time(m, e)
    model.pair_time(e, s)
    model.invalidate(e)
    assert model.cached_pair_time(e, s) is None
    assert model.cached_pair_time(m, e) is None


def test_terms_of_an_estimate_add_up() -> None:
    module, model = parse_module(LAYERS), KernelModel(V100, RELEASE)
    e = module.find("e.0")
    assert e is not None
    estimate = model.run_time(e)
    assert estimate.bytes_written == estimate.bytes_read == 64 * 1000 * 4
    assert estimate.memory == estimate.read + estimate.write
    assert max(estimate.compute, estimate.memory) <= estimate.ticks <= estimate.compute + estimate.memory
    assert estimate.coalesced


def test_side_outputs_are_written_too() -> None:
    module, model = parse_module(LAYERS), KernelModel(V100, RELEASE)
    m, e = module.find("m.0"), module.find("e.0")
    assert m is not None
    assert e is not None
    alone, launch = model.pair_time(m, e), V100.launch_ticks
    memory = alone.memory + model.run_time(m).write
    fused, _ = model.multi_output_times(m, e)
    assert fused == launch + model.timing.combine(alone.compute, memory) > launch + alone.ticks
