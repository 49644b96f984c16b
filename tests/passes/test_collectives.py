"""Collectives after fusion: what XLA combines, and their asynchronous form.

`collectives.hlo` and `collectives_cpu.hlo` have small modules as they leave fusion and as they are launched;
`tests/data/partitioned.tar.xz` has partitioned programs from the fusion input on, 25 for a CPU, 26 for a GPU.
`tests/tools/pack_partitioned.py` makes them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import hlofuse
from hlofuse.analysis.async_ops import replica_groups
from hlofuse.analysis.custom_calls import is_divided, partitions_of
from hlofuse.analysis.launches import launches
from hlofuse.compilation import Compilation, CompilationInput, compile, replay_config
from hlofuse.cost.gpu.device import load_device
from hlofuse.inputs.wire_format import ids_of_proto
from hlofuse.ir import HlofuseError, Module
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.collectives import (
    DEFAULT_BYTES,
    AllReducePromotion,
    AllReduceReassociate,
    AsyncCollectiveCreator,
    CollectiveCombiner,
    ConvertAsyncCollectivesToSync,
    overlapping,
)
from hlofuse.passes.control_flow.annotations import ShardyXLA
from hlofuse.passes.control_flow.partition import Partition
from hlofuse.pipelines.flags import parse_flags
from hlofuse.pipelines.targets import Stage, after_fusion
from hlofuse.reports.verify.verify import compare_final
from hlofuse.trace import Recorder
from ..fixtures import Case, packed, read_cases
from ..running import finished, lowered
from ..tools.module_checks import check_module

HERE = Path(__file__).parent
ARCHIVE = HERE.parent / "data" / "partitioned.tar.xz"
DEVICE = load_device("h100_sxm")
GPU_CASES = read_cases(HERE / "collectives.hlo")
CPU_CASES = read_cases(HERE / "collectives_cpu.hlo")
TO_LOCAL, TO_GLOBAL = "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"
SCHEDULER = "latency-hiding-scheduler"
SPARED_BY_SCHEDULE = {"sum_in_loop"}
"""Programs with a copy that XLA finds to be needless once it has an order of execution."""


def archive() -> dict[str, dict[str, bytes]]:
    return packed(ARCHIVE)


def module(program: str, file: str) -> Module:
    return parse_module(archive()[program][file].decode(), file)


def collectives(final: Module, backend: str) -> Counter[tuple[str, int, int]]:
    """Kind, number of operands and bytes of every collective that is launched."""
    found: Counter[tuple[str, int, int]] = Counter()
    for x, launch in launches(final, backend):
        if launch.kind == "collective":
            inner = x.called_computations[0].root if x.opcode == "async-start" else x
            found[inner.opcode, len(x.operands), sum(o.shape.byte_size for o in x.operands)] += 1
    return found


@pytest.mark.parametrize("case", GPU_CASES, ids=str)
def test_small_modules_launch_what_xla_does_on_gpu(case: Case) -> None:
    done = finished(case.module(), "gpu", DEVICE)
    check_module(done.final)
    found = compare_final(done.final, case.expected("h100_sxm"), "gpu")
    assert found.same_kernels, (found.only_xla, found.only_actual)
    assert found.same_copies or case.name in SPARED_BY_SCHEDULE
    # Names tell whether a collective is started; that rests on the order of execution.
    assert not found.renamed or SCHEDULER in done.span(Stage.SCHEDULED).not_repeated


@pytest.mark.parametrize("case", CPU_CASES, ids=str)
def test_small_modules_launch_what_xla_does_on_cpu(case: Case) -> None:
    final = finished(case.module(), "cpu").final
    found = compare_final(final, case.expected("cpu"), "cpu")
    assert found.agrees
    assert not found.renamed


@pytest.mark.parametrize("program", sorted(archive()))
def test_partitioned_programs_launch_what_xla_does(program: str) -> None:
    backend = program.partition("/")[0]
    before, expected = module(program, "before.hlo"), module(program, "final.hlo")
    config = replay_config(backend, DEVICE if backend == "gpu" else None)
    ids = ids_of_proto(archive()[program]["before.hlo.pb"])
    final = compile(CompilationInput(before, ids=ids), config, until=Stage.SCHEDULED).final
    check_module(final)
    assert_launches(final, expected, backend)
    assert collectives(final, backend)


def assert_launches(final: Module, expected: Module, backend: str) -> None:
    found = compare_final(final, expected, backend)
    assert found.same_kernels, (found.only_xla, found.only_actual)
    assert found.same_copies, (found.only_xla, found.only_actual)
    assert collectives(final, backend) == collectives(expected, backend)


BY_HAND = sorted(program for program in archive() if "/sm_" in program)
"""Programs of `jax.shard_map`, which XLA's partitioner only takes apart."""
ADDED_UP = [
    f"{backend}/ns_{name}"
    for backend in ("cpu", "gpu")
    for name in "dp_deep_bf16 dp_grad embedding_grad norms scan_grad tensor_grad tensor_mlp two_axes".split()
    if (backend, name) not in (("gpu", "scan_grad"), ("cpu", "tensor_grad"))
]
"""Programs of `NamedSharding` whose devices exchange nothing but sums; on a GPU XLA takes that of `scan_grad`
out of its loop, and on a CPU `tensor_grad` has a quotient for a product with a reciprocal in one kernel."""


def from_the_front_end(program: str) -> tuple[Module, Compilation]:
    backend = program.partition("/")[0]
    config = replay_config(backend, DEVICE if backend == "gpu" else None)
    unoptimized = CompilationInput(module(program, "unoptimized.hlo"), stage=Stage.BEFORE)
    done = compile(unoptimized, config, until=Stage.SCHEDULED)
    return done.final, done


@pytest.mark.parametrize("program", BY_HAND)
def test_programs_partitioned_by_hand_launch_what_xla_does_from_the_front_end_on(program: str) -> None:
    backend = program.partition("/")[0]
    final, done = from_the_front_end(program)
    check_module(final)
    assert_launches(final, module(program, "final.hlo"), backend)
    assert "shardy-xla" not in done.span(Stage.INPUT).not_repeated
    assert final.devices == 1


@pytest.mark.parametrize("program", ADDED_UP)
def test_programs_whose_devices_only_add_up_launch_what_xla_does_but_for_names(program: str) -> None:
    backend = program.partition("/")[0]
    final, done = from_the_front_end(program)
    check_module(final)
    expected = module(program, "final.hlo")
    found = compare_final(final, expected, backend)
    of_xla, actual = (
        Counter((k.opcode, k.kind, k.shape, k.contents) for k in side)
        for side in (found.only_xla, found.only_actual)
    )
    assert of_xla == actual
    assert found.same_copies
    assert collectives(final, backend) == collectives(expected, backend)
    assert "shardy-xla" not in done.span(Stage.INPUT).not_repeated
    assert final.devices == 1


@pytest.mark.parametrize("program", sorted(archive().keys() - {*BY_HAND, *ADDED_UP, "gpu/ns_scan_grad"}))
def test_the_partitioner_is_named_where_it_has_work(program: str) -> None:
    before = module(program, "unoptimized.hlo")
    assert is_divided(before)
    backend = program.partition("/")[0]
    span = lowered(before, backend, DEVICE if backend == "gpu" else None)
    assert (*span.not_repeated["shardy-xla"].values(), span.module.devices) == (1, partitions_of(before))
    # What the partitioner has divided still says how its arguments are.
    assert not is_divided(module(program, "before.hlo"))


def test_a_program_that_no_replay_divides_is_not_compared_with_one_device(tmp_path: Path) -> None:
    files = archive()["gpu/ns_reshard"]
    (tmp_path / "a.hlo").write_bytes(files["unoptimized.hlo"])
    (tmp_path / "of_xla.hlo").write_bytes(files["final.hlo"])
    program, of_xla = (hlofuse.open(tmp_path / name, device="h100_sxm") for name in ("a.hlo", "of_xla.hlo"))
    found, one = program.memory().to_json()["memory"], of_xla.memory().to_json()["memory"]
    assert (found["devices"], found["fits"], one["devices"], one["fits"]) == (8, None, 1, True)
    assert (one["arguments"], one["total"]) == (524_288, 1_572_864)
    text = program.memory(memory=found["total"] - 1).to_text() + program.explain().to_text()
    assert "before division over 8 devices, each has" in text
    assert not any(part in text for part in ("not fit", "Floor", "optimum", "one device"))
    with pytest.raises(HlofuseError, match="the memory of one device is not known"):
        program.check(max_memory=found["total"] - 1)


def test_a_sum_that_xla_takes_out_of_a_loop_is_named() -> None:
    done = from_the_front_end("gpu/ns_scan_grad")[1]
    assert list(done.span(Stage.INPUT).not_repeated) == ["while-loop-all-reduce-code-motion"]


def manual(given: str | None = "x", work: str = "", axis: str = "x") -> Module:
    """`a`, divided along an axis or on every device, goes into a manual computation, after `work` if any."""

    def spec(name: str, *dimensions: str) -> str:
        axes = ", ".join(f'{{\\"{d}\\"}}' if d else "{}" for d in dimensions)
        if name == "sharding":
            return f'frontend_attributes={{xla.sdy.sharding="#sdy.sharding<@mesh, [{axes}]>"}}'
        many = f'xla.sdy.{name}="#sdy.sharding_per_value<[<@mesh, [{axes}]>]>"'
        return f'frontend_attributes={{{many},xla.sdy.manual_axes="#sdy<manual_axes{{\\"{axis}\\"}}>"}}'

    source = "g" if work else "a"
    mesh = '{xla.sdy.meshes={mesh = #sdy.mesh<["x"=8]>}}'
    return parse_module(f"""HloModule m, num_partitions=8, frontend_attributes={mesh}
body {{
  p = f32[4,2]{{1,0}} parameter(0)
  ROOT n = f32[4,2]{{1,0}} negate(p)
}}
add {{
  i = f32[] parameter(0)
  j = f32[] parameter(1)
  ROOT k = f32[] add(i, j)
}}
ENTRY main {{
  a = f32[32,2]{{1,0}} parameter(0){"" if given is None else ", " + spec("sharding", given, "")}
  w = f32[2]{{0}} parameter(1), {spec("sharding", "")}
  {f"g = f32[32,2]{{1,0}} {work}" if work else ""}
  l = f32[4,2]{{1,0}} custom-call({source}), custom_call_target="{TO_LOCAL}", {spec("in_shardings", "x", "")}
  c = f32[4,2]{{1,0}} call(l), to_apply=body, frontend_attributes={{inlineable="xla_late"}}
  o = f32[32,2]{{1,0}} custom-call(c), custom_call_target="{TO_GLOBAL}", {spec("out_shardings", "x", "")}
  v = f32[2]{{0}} exponential(w)
  ROOT t = (f32[32,2]{{1,0}}, f32[2]{{0}}) tuple(o, v)
}}
""")


@pytest.mark.parametrize("given", ["x", None])  # an argument without a sharding takes its reader's
def test_a_manual_computation_takes_each_device_s_part(given: str | None) -> None:
    m = manual(given)
    assert Partition(m).is_complete
    assert ShardyXLA().run(m, Recorder())
    check_module(m)
    assert [str(p.shape) for p in m.entry.parameters] == ["f32[4,2]{1,0}", "f32[2]{0}"]
    assert str(m.entry.root.shape) == "(f32[4,2]{1,0}, f32[2]{0})"
    assert sorted(x.opcode for x in m.entry) == ["exponential", "negate", "parameter", "parameter", "tuple"]


ADD = """negate(a)
  z = f32[] constant(0)
  u = f32[32]{0} reduce(g, z), dimensions={1}, to_apply=add
  q = f32[2]{0} reduce(g, z), dimensions={0}, to_apply=add
  b = f32[32,2]{1,0} broadcast(q), dimensions={1}
  h = f32[32,2]{1,0} multiply(g, b)"""


@pytest.mark.parametrize("work", ["negate(a)", "reverse(a), dimensions={1}"])
def test_work_outside_is_done_on_each_device_s_part(work: str) -> None:
    m = manual(work=work)
    assert ShardyXLA().run(m, Recorder())
    check_module(m)
    assert next(str(x.shape) for x in m.entry if x.name == "g") == "f32[4,2]{1,0}"


def test_sums_of_parts_are_added_over_the_devices() -> None:
    m = manual(work=ADD)
    assert ShardyXLA().run(m, Recorder())
    check_module(m)
    shapes = {x.name: str(x.shape) for x in m.entry}
    assert [shapes[name] for name in "uqbh"] == ["f32[4]{0}", "f32[2]{0}", "f32[4,2]{1,0}", "f32[4,2]{1,0}"]
    (total,) = (x for x in m.entry if x.opcode == "all-reduce")
    assert (total.operands[0].name, [u.name for u in total.users]) == ("q", ["b"])
    assert total.attributes.raw("replica_groups") == "{{0,1,2,3,4,5,6,7}}"


@pytest.mark.parametrize(
    "change",
    [
        {"given": ""},  # an array that is divided where it goes in
        {"work": "reverse(a), dimensions={0}"},  # work that needs another device's part
        {"axis": "y"},  # an axis that is left to the partitioner
    ],
)
def test_other_shardings_are_left_to_the_partitioner(change: dict[str, str]) -> None:
    assert (Partition(m := manual(**change)).is_complete, is_divided(m)) == (False, True)


@pytest.mark.parametrize(("element_type", "promoted"), [("bf16", True), ("f16", False), ("f32", False)])
def test_sums_of_narrow_types_are_promoted(element_type: str, promoted: bool) -> None:
    m = parse_module(f"""HloModule m, num_partitions=8
add {{
  a = {element_type}[] parameter(0)
  b = {element_type}[] parameter(1)
  ROOT s = {element_type}[] add(a, b)
}}
ENTRY e {{
  x = {element_type}[8]{{0}} parameter(0)
  ROOT r = {element_type}[8]{{0}} all-reduce(x), replica_groups={{}}, to_apply=add
}}
""")
    assert AllReducePromotion(widened={"bf16": "f32"}).run(m, Recorder()) == promoted
    check_module(m)
    summed = next(x for x in m.entry if x.opcode == "all-reduce")
    assert summed.shape.element_type == ("f32" if promoted else element_type)
    assert summed.called_computations[0].root.shape.element_type == summed.shape.element_type


def added_sums(side: str, groups: str = "{{0,1}}") -> tuple[bool, Module, Recorder]:
    m = parse_module(f"""HloModule m, num_partitions=2
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[8]{{0}} parameter(0)
  y = f32[2,4]{{1,0}} parameter(1)
  p = f32[8]{{0}} all-reduce(x), replica_groups={{{{0,1}}}}, to_apply=add
  q = f32[2,4]{{1,0}} all-reduce(y), replica_groups={groups}, to_apply=add
  r = f32[8]{{0}} reshape(q)
  ROOT t = f32[8]{{0}} {side}(p, r)
}}
""")
    recorder = Recorder()
    changed = AllReduceReassociate().run(m, recorder)
    check_module(m)
    return changed, m, recorder


def test_sums_that_are_added_are_one_sum() -> None:
    changed, m, _ = added_sums("add")
    assert changed
    assert m.entry.root.opcode == "all-reduce"
    assert [x.opcode for x in m.entry].count("all-reduce") == 1


@pytest.mark.parametrize(("side", "groups"), [("maximum", "{{0,1}}"), ("add", "{{0},{1}}")])
def test_other_reductions_and_other_devices_stay_apart(side: str, groups: str) -> None:
    assert not added_sums(side, groups)[0]


GATHERS = """HloModule m, num_partitions=8
ENTRY e {
  a = f32[4,2]{1,0} parameter(0)
  b = f32[4,2]{1,0} parameter(1)
  c = f32[4,2]{1,0} parameter(2)
  p = f32[32,2]{1,0} all-gather(a), replica_groups=[1,8]<=[8], dimensions={0}
  q = f32[4,16]{1,0} all-gather(b), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={1}
  r = f32[32,2]{1,0} all-gather(c), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}
  ROOT t = (f32[32,2]{1,0}, f32[4,16]{1,0}, f32[32,2]{1,0}) tuple(p, q, r)
}
"""


def gathers(**options: object) -> list[int]:
    """The numbers of operands of the all-gathers left."""
    m = parse_module(GATHERS)
    CollectiveCombiner(name="x", opcode="all-gather", **options).run(m, Recorder())  # type: ignore[arg-type]
    check_module(m)
    return sorted(len(x.operands) for x in m.entry if x.opcode == "all-gather")


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, [3]),
        ({"by_dimension": True}, [1, 2]),
        ({"max_count": 2}, [1, 2]),
        ({"max_count": 0}, [1, 1, 1]),
        ({"max_bytes": 0}, [1, 1, 1]),
        ({"max_bytes": 3 * 256}, [3]),
        ({"max_bytes": 3 * 256 - 1}, [1, 2]),
        ({"max_bytes": 2 * 256 - 1}, [1, 1, 1]),
        ({"max_bytes": 255}, [1, 1, 1]),
        ({"max_bytes": None}, [3]),
    ],
)
def test_thresholds_bound_what_is_combined(options: dict[str, object], left: list[int]) -> None:
    assert gathers(**options) == left


def test_constrained_layouts_keep_collectives_separate() -> None:
    m = parse_module(GATHERS.replace("dimensions={1}", "constrain_layout=true, dimensions={1}"))
    assert not CollectiveCombiner(name="x", opcode="all-gather").run(m, Recorder())


@pytest.mark.parametrize(
    ("flag", "changed"),
    [
        ("--xla_gpu_all_gather_combine_threshold_bytes=5", ("max_bytes", 5)),
        ("--xla_gpu_collective_combine_threshold_count=3", ("max_count", 3)),
        ("--xla_gpu_enable_all_gather_combine_by_dim=true", ("by_dimension", True)),
        ("--xla_gpu_all_reduce_combine_threshold_bytes=5", ("max_bytes", DEFAULT_BYTES)),
    ],
)
def test_flags_set_the_thresholds(flag: str, changed: tuple[str, object]) -> None:
    steps = [s for p in after_fusion("gpu", DEVICE, parse_flags(flag)) for s in p.steps]
    combiner = next(s for s in steps if s.name == "gpu-all-gather-combiner")
    assert getattr(combiner, changed[0]) == changed[1]


@pytest.mark.parametrize(
    ("other", "overlaps"),
    [
        ("negate(x)", True),
        ("negate(r)", False),
        ("bitcast(x)", False),
        ("all-reduce(x), replica_groups={}, to_apply=add", False),
    ],
)
def test_a_start_stays_where_other_work_can_run_before_its_done(other: str, overlaps: bool) -> None:
    m = parse_module(f"""HloModule m, num_partitions=8
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[8]{{0}} parameter(0)
  p = f32[8]{{0}} sine(x)
  r = f32[8]{{0}} all-reduce(p), replica_groups={{}}, to_apply=add
  o = f32[8]{{0}} {other}
  ROOT t = (f32[8]{{0}}, f32[8]{{0}}) tuple(r, o)
}}
""")
    assert AsyncCollectiveCreator().run(m, Recorder())
    starts = [x for x in m.entry if x.opcode == "async-start"]
    assert (starts[0] in overlapping(m.entry)) == overlaps
    ConvertAsyncCollectivesToSync().run(m, Recorder())
    check_module(m)
    left = [x.called_computations[0].root.opcode for x in m.entry if x.opcode == "async-start"]
    # With another all-reduce, the sine can run during that one.
    assert left == (["all-reduce"] if overlaps or other.startswith("all-reduce") else [])


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{}", ()),
        ("{{0,1},{2,3}}", ((0, 1), (2, 3))),
        ("[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['a'=2,'b'=4] {'b'}", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("mesh['a'=2,'b'=1,'c'=4] {'a'}", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['a'=2,'b'=2] {'b','a'}", ((0, 2, 1, 3),)),
        ("mesh['a'=8] {'a':(1)2,'a':(4)2}", ((0, 1, 4, 5), (2, 3, 6, 7))),
        ("mesh['a'=4,'b'=2], device_ids=([2,2,2]T(0,2,1)) {'a':(2)2}", ((0, 1), (2, 3), (4, 5), (6, 7))),
        ("mesh['a'=2,'b'=2] {}", ((0,), (1,), (2,), (3,))),
        ("somewhere", ()),
    ],
)
def test_replica_groups_are_read_in_every_form(text: str, groups: object) -> None:
    assert replica_groups(text) == groups
