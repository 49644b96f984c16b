"""The passes around fusion differ between releases: small modules, with XLA's answers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from hlofuse.compilation import CompilationInput, compile, replay_config
from hlofuse.cost.gpu.device import load_device
from hlofuse.ir.record import replace
from hlofuse.ir.text.reader import parse_module
from hlofuse.passes.algebraic.context import Options
from hlofuse.passes.algebraic.reshape_mover import DegenerateDimensionRewriter, ReshapeMover
from hlofuse.passes.algebraic.simplifier import AlgebraicSimplifier
from hlofuse.passes.base import Pipeline
from hlofuse.passes.dot.dot_merger import DotMerger
from hlofuse.passes.gpu.layout_assignment import GpuLayoutAssignment
from hlofuse.pipelines.targets import Stage, before_fusion
from hlofuse.releases import behaviours, release_of
from hlofuse.trace import OnlySkipped, Recorder
from ..fixtures import companion_texts
from ..tools.compare_passes import same_structure

TEXTS = companion_texts(__file__)

_LOOP = """HloModule m
cond {{
  s = (s32[], f32[{n}]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)
  ROOT less = pred[] compare(k, n), direction=LT
}}
body {{
  s = (s32[], f32[{n}]) parameter(0)
  k = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(k, one)
  x = f32[{n}] get-tuple-element(s), index=1
  y = f32[{n}] sine(x)
  ROOT t = (s32[], f32[{n}]) tuple(next, y)
}}
ENTRY e {{
  x = f32[{n}] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[{n}]) tuple(zero, x)
  w = (s32[], f32[{n}]) while(t), condition=cond, body=body
  ROOT r = f32[{n}] get-tuple-element(w), index=1
}}"""

_PLACED = {
    **dict.fromkeys(("sine", "concatenate", "and", "reduce", "add", "select"), 1),
    **dict.fromkeys(("broadcast", "compare"), 2),
    "dynamic-slice": 1,
    "dynamic-update-slice": 1,
}
"""What a scatter of one update becomes."""

_MOVED = {"sine": 1, "transpose": 2, "copy": 3, "negate": 1}
_ROWS = {**dict.fromkeys(("negate", "iota", "compare", "select", "reduce"), 1), "broadcast": 3}
_DIVIDED = {
    **dict.fromkeys(("add", "slice", "and", "convert"), 1),
    **dict.fromkeys(("compare", "negate"), 2),
    "select": 3,
}
"""A remainder by a power of two."""
_SLICED = ({"sine": 1, "slice": 1, "fusion": 1}, {"sine": 1, "fusion": 1})
_ONES = dict.fromkeys(("negate", "iota", "concatenate"), 1)
_PACKED = {
    **dict.fromkeys(("or", "iota", "sort", "slice"), 1),
    **dict.fromkeys(("and", "xor"), 4),
    **dict.fromkeys(("convert", "shift-right-arithmetic"), 2),
    "broadcast": 7,
}
CASES = {
    "floats_reassociated": ({"multiply": 1}, {"multiply": 2}),
    "cpu_keeps_bf16": ({"fusion": 1, "convert": 5, "maximum": 1}, {"fusion": 1, "maximum": 1}),
    "ynn_reduces_at_length": ({"reduce-window": 1, "reduce": 1}, {"fusion": 1}),
    "ynn_ends_in_arithmetic": ({"fusion": 1}, {"fusion": 1, "broadcast": 1}),
    "ynn_copies_past_ones": ({"copy": 2, "fusion": 2}, {"copy": 1, "fusion": 2}),
    "ynn_computes_angles": ({"tan": 1, "fusion": 1}, {"fusion": 1}),
    "products_fused_by_tiling": ({"fusion": 1, "transpose": 1}, {"fusion": 1}),
    "slices_past_ones": ({"slice": 3, "multiply": 1}, {"slice": 2, "multiply": 1}),
    "slices_of_updates": (
        {"dynamic-update-slice": 1, "slice": 1, "negate": 1},
        {"dynamic-update-slice": 1, "negate": 1},
    ),
    "filters_padded_whole": (
        {"pad": 2, "custom-call": 1, "transpose": 1},
        {"pad": 1, "custom-call": 1, "transpose": 1},
    ),
    "joins_unlike_loops": ({"fusion": 2}, {"fusion": 1}),
    "simplifies_conditionals": (
        {"convert": 1, "conditional": 1},
        {"broadcast": 1, "sine": 1, "negate": 1, "select": 1},
    ),
    "products_end_in_sums": ({"fusion": 1, "add": 1}, {"fusion": 1}),
    "leaves_products_of_calls": ({"call": 1, "fusion": 1}, {"call": 1, "dot": 1}),
    "weighs_merged_products": ({"concatenate": 1, "fusion": 1, "slice": 2}, {"fusion": 2}),
    "cpu_sums_products": ({"dot": 1}, {"multiply": 1, "reduce": 1}),
    "inverts_broadcasts": (
        {"sine": 1, "broadcast": 1, "divide": 1},
        {"sine": 1, "broadcast": 2, "divide": 1, "multiply": 1},
    ),
    "undoes_transposes_past_ones": (_MOVED, {"sine": 1, "negate": 1}),
    "undoes_chains_of_bitcasts": (_MOVED, {"sine": 1, "negate": 1}),
    "hoists_transposes": ({"fusion": 2}, {"transpose": 2, "concatenate": 1, "fusion": 1, "slice": 2}),
    "gathers_from_any_dimension": (
        {"sine": 1, "transpose": 2, "copy": 2, "gather": 1, "negate": 1},
        {"sine": 1, "transpose": 1, "copy": 1, "gather": 1, "negate": 1},
    ),
    "undoes_squares_and_exponentials": ({"abs": 1}, {"multiply": 1, "sqrt": 1, "exponential": 1, "log": 1}),
    "scatters_into_any_dimension": (
        {"sine": 1, "transpose": 3, "scatter": 1},
        {"sine": 1, "transpose": 1, "scatter": 1},
    ),
    "moves_for_longer_runs": (_PLACED, {**_PLACED, "broadcast": 3, "iota": 1, "multiply": 1}),
    "lays_out_at_once": ({"transpose": 2, "while": 1}, {"while": 1}),
    "packs_narrow_topk": ({"iota": 1, "sort": 1, "slice": 2}, _PACKED),
    "bitcast_converts_become_bitcasts": ({"sine": 1, "bitcast-convert": 1}, {"sine": 1}),
    "lays_out_long_rows_only": ({**_ROWS, "transpose": 2}, _ROWS),
    "reshapes_keep_ones_in_place": ({**_ONES, "transpose": 1}, _ONES),
    "slices_reshapes_anywhere": ({"sine": 1, "slice": 2}, {"sine": 1, "slice": 1}),
    "reduces_before_broadcasts": ({"broadcast": 1, "reduce": 2}, {"broadcast": 1, "reduce": 1}),
    "cuts_scatters_past_windows": (
        {"broadcast": 1, "scatter": 1, "slice": 1},
        {"broadcast": 1, "scatter": 1},
    ),
    "bitcasts_pass_unary": ({"sine": 2}, {"sine": 1}),
    "gpu_compares_bf16": ({"convert": 3, "maximum": 1}, {"maximum": 1}),
    "gpu_negates_bf16": ({"convert": 2, "negate": 1}, {"negate": 1}),
    "moves_reshapes_on": ({**_DIVIDED, "broadcast": 3}, {**_DIVIDED, "broadcast": 4}),
    "products_repeat_powers": ({"broadcast": 1, "power": 1, "fusion": 2}, {"fusion": 2}),
    "products_take_slices": _SLICED,
    "products_take_cheap_slices": _SLICED,
    "products_enter_concatenates": ({"sine": 1, "fusion": 1}, {"fusion": 1}),
    "joins_readers_of_one": ({"fusion": 2}, {"fusion": 1}),
    "products_of_any_type": ({"custom-call": 1}, {"fusion": 1}),
    "products_in_cublaslt": ({"custom-call": 1, "add": 1}, {"custom-call": 1}),
}
_RELEASES = {
    "moves_for_longer_runs": ("0.8.3", "0.12.0.1"),
    "gathers_from_any_dimension": ("0.7.2", "0.8.3"),
    "undoes_squares_and_exponentials": ("0.10.2", "0.11.1"),
    "scatters_into_any_dimension": ("0.8.3", "0.9.2"),
    "ynn_reduces_at_length": ("0.9.2", "0.10.2"),
    "ynn_computes_angles": ("0.11.1", "0.11.2"),
    "joins_unlike_loops": ("0.4.35", "0.4.38"),
    "simplifies_conditionals": ("0.7.2", "0.8.3"),
    "products_end_in_sums": ("0.9.2", "0.10.2"),
    "leaves_products_of_calls": ("0.9.2", "0.10.2"),
    "weighs_merged_products": ("0.10.2", "0.11.1"),
    "cpu_sums_products": ("0.9.2", "0.10.2"),
    "inverts_broadcasts": ("0.9.2", "0.10.2"),
    "undoes_transposes_past_ones": ("0.7.2", "0.8.3"),
    "undoes_chains_of_bitcasts": ("0.8.3", "0.9.2"),
    "hoists_transposes": ("0.8.3", "0.9.2"),
    "packs_narrow_topk": ("0.10.2", "0.11.1"),
    "bitcast_converts_become_bitcasts": ("0.6.2", "0.7.2"),
    "lays_out_long_rows_only": ("0.8.3", "0.9.2"),
    "reshapes_keep_ones_in_place": ("0.9.2", "0.10.2"),
    "slices_reshapes_anywhere": ("0.10.2", "0.11.1"),
    "reduces_before_broadcasts": ("0.9.2", "0.10.2"),
    "cuts_scatters_past_windows": ("0.9.2", "0.10.2"),
    "bitcasts_pass_unary": ("0.8.3", "0.9.2"),
    "gpu_compares_bf16": ("0.5.3", "0.6.2"),
    "gpu_negates_bf16": ("0.7.2", "0.8.3"),
    "moves_reshapes_on": ("0.5.3", "0.6.2"),
    "products_repeat_powers": ("0.7.2", "0.6.2"),
    "products_take_slices": ("0.7.2", "0.8.3"),
    "products_take_cheap_slices": ("0.10.2", "0.11.1"),
    "products_enter_concatenates": ("0.10.2", "0.11.1"),
    "joins_readers_of_one": ("0.4.38", "0.5.3"),
    "products_of_any_type": ("0.9.2", "0.10.2"),
    "products_in_cublaslt": ("0.9.2", "0.10.2"),
}
_AFTER_FUSION = ("joins_unlike_loops", "joins_readers_of_one")
_ON_GPU = (
    "filters_padded_whole",
    "simplifies_conditionals",
    "leaves_products_of_calls",
    "weighs_merged_products",
    "scatters_into_any_dimension",
    "moves_for_longer_runs",
    "lays_out_at_once",
    "hoists_transposes",
    "packs_narrow_topk",
    "bitcast_converts_become_bitcasts",
    "lays_out_long_rows_only",
    "reshapes_keep_ones_in_place",
    "cuts_scatters_past_windows",
    "reduces_before_broadcasts",
    *(name for name in CASES if name.startswith(("gpu_", "products_", "moves_"))),
    *_AFTER_FUSION,
)
_NOTHING = ("parameter", "constant", "bitcast", "tuple", "get-tuple-element")


def opcodes(
    text: str, release: str, flipped: str = "", on_gpu: bool = False, until: Stage = Stage.INPUT
) -> dict[str, int]:
    """The operations of the entry and of its calls at the fusion input, or in the final module."""
    config = replay_config("gpu", "h100_sxm", xla=release) if on_gpu else replay_config("cpu", xla=release)
    if flipped:
        own = release_of(release)
        change: dict[str, Any] = {flipped: not getattr(own, flipped)}
        config = replace(config, mixed=replace(own, **change))
    done = compile(CompilationInput(parse_module(text), stage=Stage.BEFORE), config, until=until)
    module = done.before if until == Stage.INPUT else done.replayed_final
    called = (x.to_apply for x in module.entry if x.opcode == "call")
    return dict(Counter(i.opcode for c in (module.entry, *called) for i in c if i.opcode not in _NOTHING))


@pytest.mark.parametrize("name", CASES)
def test_each_release_as_xla_answered(name: str) -> None:
    text, (earlier, later) = TEXTS[name], CASES[name]
    old, new = _RELEASES.get(name, ("0.11.1", "0.12.0.1"))
    on_gpu = name in _ON_GPU
    until = Stage.SCHEDULED if name in _AFTER_FUSION else Stage.INPUT
    assert opcodes(text, old, "", on_gpu, until) == opcodes(text, new, name, on_gpu, until) == earlier
    assert opcodes(text, new, "", on_gpu, until) == opcodes(text, old, name, on_gpu, until) == later


@pytest.mark.parametrize(
    ("side", "source", "order", "left"),
    [
        (0, (48, 4, 64), (1, 0, 2), 0),
        (0, (56, 4, 64), (1, 0, 2), 1),  # no tile of 16 rows
        (1, (4, 64, 56), (1, 0, 2), 0),
        (1, (16, 64, 12), (1, 0, 2), 1),  # no tile of 8 columns
        (1, (64, 64, 20), (1, 2, 0), 0),
        (1, (64, 64, 10), (1, 2, 0), 1),  # rows of 40 bytes
        (2, (16, 12, 512), (1, 0, 2), 0),
        (2, (16, 12, 512), (0, 2, 1), 1),  # parts of a dimension come apart
    ],
)
def test_products_hold_a_transpose_that_can_be_tiled_since_0_12(
    side: int, source: tuple[int, int, int], order: tuple[int, int, int], left: int
) -> None:
    """As XLA 0.12.0.1 answered for an H100; the last side is the result."""
    sizes = [source[d] for d in order]
    if side == 2:
        shapes = [(source[0] * source[1], 64), (64, 512)]
    else:
        shapes = (
            [(sizes[0] * sizes[1], 64), (64, 512)] if side == 0 else [(512, 64), (64, sizes[1] * sizes[2])]
        )
    given = [(source if k == side else shape) for k, shape in enumerate(shapes)]
    wide = f"f32[{shapes[0][0]},{shapes[1][1]}]"
    moved = f"f32{sizes} transpose({'r' if side == 2 else 'xy'[side]}), dimensions={{{str(order)[1:-1]}}}"
    read = ["r" if k == side else name for k, name in enumerate("xy")]
    ends = [f"  t = {moved}", f"  r = f32{[*(wide if side == 2 else shapes[side])]} reshape(t)"]
    dot = f"dot({read[0]}, {read[1]}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    if side == 2:
        ends = [f"  d = {wide} {dot}", f"  r = f32{[*source]} reshape(d)", f"  t = {moved}"]
    root = f"  ROOT z = f32{sizes} exponential(t)" if side == 2 else f"  ROOT z = {wide} {dot}"
    text = "\n".join(
        [
            "HloModule m",
            "ENTRY e {",
            *(f"  {n} = f32{[*s]} parameter({k})" for k, (n, s) in enumerate(zip("xy", given, strict=True))),
            *ends,
            root,
            "}",
        ]
    )
    assert opcodes(text, "0.12.0.1", "", True).get("transpose", 0) == left


@pytest.mark.parametrize(
    ("case", "changes", "left"),
    [
        ("rows_moved_for_a_product", {"192] tuple(d, r)": "192] tuple(d, d)"}, 1),
        ("rows_moved_for_a_product", {"multiply": "add", "tuple(d, r)": "tuple(d, d)"}, 0),  # taken with it
        ("rows_moved_for_a_product", {"bf16[1024,192]) tuple(d, r)": "bf16[128,8,192]) tuple(d, m)"}, 0),
        ("rows_moved_for_parts_of_a_product", {}, 0),
        ("rows_moved_for_parts_of_a_product", {"[128,8,6,32]": "[128,6,8,32]", "{1,0,2,3}": "{2,0,1,3}"}, 1),
    ],
)
def test_products_leave_rows_to_sources_since_0_12(case: str, changes: dict[str, str], left: int) -> None:
    """As XLA 0.12.0.1 answered for an H100: where the fusion cannot take that, too, and dimensions join."""
    text = TEXTS[case]
    for old, new in changes.items():
        text = text.replace(old, new)
    assert opcodes(text, "0.12.0.1", "", True).get("transpose", 0) == left


def test_operands_are_swapped_before_bitcasts_are_hoisted_until_0_9() -> None:
    for release, sizes in (("0.9.2", (64, 8)), ("0.10.2", (8, 64))):
        given = CompilationInput(parse_module(TEXTS["operands_of_a_product_swapped"]), stage=Stage.BEFORE)
        done = compile(given, replay_config("gpu", "a100_sxm_40", xla=release), until=Stage.INPUT)
        assert [x.sizes for x in done.before.entry if x.is_fusion] == [sizes]


def test_products_end_in_sums_with_pads_since_0_12() -> None:
    """As XLA 0.12.0.1 answered for an H100: no fusion of a product may hold a pad, but it may hold a sine."""
    text = TEXTS["a_sum_of_a_product_and_a_pad"]
    sine = text.replace("pad(z, zero), padding=0_0x0_0x0_19", "sine(z)").replace("[4,64,45]", "[4,64,64]")
    assert opcodes(text, "0.12.0.1", "", True) == {"pad": 1, "fusion": 1}
    assert opcodes(sine, "0.12.0.1", "", True) == {"sine": 1, "fusion": 1, "add": 1}


def test_the_logarithm_of_a_power_is_a_product() -> None:
    text = TEXTS["logarithm_power_product"]
    found = opcodes(text, "0.11.1")
    assert {o: n for o, n in found.items() if o != "broadcast"} == dict.fromkeys(
        ("abs", "log", "multiply", "compare", "select"), 1
    )


@pytest.mark.parametrize(("release", "transposes"), [("0.8.3", 3), ("0.9.2", 1), ("0.12.0.1", 1)])
def test_scatters_on_cpus_put_dimensions_first_until_0_8(release: str, transposes: int) -> None:
    assert opcodes(TEXTS["scatters_into_any_dimension"], release)["transpose"] == transposes


@pytest.mark.parametrize(
    ("release", "shape", "windows", "fusions"),
    [
        ("0.8.3", "32,1024", 1, 0),
        ("0.9.2", "31,1024", 1, 0),
        ("0.9.2", "32,1024", 0, 1),
        ("0.9.2", "2,100000", 1, 1),
        ("0.10.2", "2,100000", 0, 1),
        ("0.11.1", "31,1024", 0, 1),
    ],
)
def test_ynnpack_reduces_since_0_9(release: str, shape: str, windows: int, fusions: int) -> None:
    """In 0.9 at 32,768 elements or more, and 1,024 of them at a time."""
    text = (
        TEXTS["ynn_reduces_at_length"]
        .replace("31,1024", shape)
        .replace("f32[31]", f"f32[{shape.split(',')[0]}]")
    )
    found = opcodes(text, release)
    assert (found.get("reduce-window", 0), found.get("fusion", 0)) == (windows, fusions)


_SCAN = """HloModule m
f {{
  x = {scalar} parameter(0)
  c = {scalar} parameter(1)
  y = {scalar} {opcode}(x, c)
  ROOT t = ({scalar}, {scalar}) tuple(y, y)
}}
ENTRY e {{
  x = {array} parameter(0)
  zero = {scalar} constant({start})
  s = ({array}, {scalar}) scan(x, zero), dimensions={{0}}, num_carries=1, to_apply=f,
    is_associative=true{more}
  ROOT y = {array} get-tuple-element(s), index=0
}}"""


@pytest.mark.parametrize(
    ("length", "opcode", "start", "more", "windows"),
    [
        (16, "add", "0", "", 1),
        (17, "add", "0", "", 2),
        (100, "add", "0", "", 2),
        (16, "add", "1", "", 1),
        (17, "add", "1", "", 0),
        (17, "maximum", "1", "", 2),
        (17, "multiply", "1", "", 2),
        (17, "add", "0", ", is_reverse=true", 0),
    ],
)
def test_a_scan_is_a_cumulative_sum(length: int, opcode: str, start: str, more: str, windows: int) -> None:
    """Forward, and from a value that may come in twice where there are several blocks; others are loops."""
    array = f"f32[{length}]"
    text = _SCAN.format(array=array, scalar="f32[]", opcode=opcode, start=start, more=more)
    found = opcodes(text, "0.12.0.1", on_gpu=True)
    assert found.get("reduce-window", 0) == windows
    assert found.get("while", 0) == (windows == 0)
    assert "scan" not in found


@pytest.mark.parametrize(
    ("source", "shape"),
    [
        ("reshape(w)", "f32[8]"),
        ("broadcast(one), dimensions={}", "f32[8]"),
        ("slice(v), slice={[0:8], [0:1]}", "f32[8,1]"),
        ("transpose(u), dimensions={1,0}", "f32[8,1]"),
    ],
)
def test_elementwise_operations_run_without_dimensions_of_size_1(source: str, shape: str) -> None:
    module = parse_module(
        f"""HloModule m
        ENTRY e {{
          u = f32[1,8] parameter(0)
          v = f32[8,4] parameter(1)
          w = f32[8] parameter(2)
          one = f32[] constant(1)
          x = f32[8,1] {source}
          ROOT y = f32[8,1] sine(x)
        }}"""
    )
    DegenerateDimensionRewriter().run(module, OnlySkipped())
    assert str(next(i for i in module.entry if i.opcode == "sine").shape).startswith(shape)


def test_a_concatenate_runs_without_the_dimensions_that_have_size_1_in_the_result() -> None:
    module = parse_module(TEXTS["parts_of_size_one"])
    DegenerateDimensionRewriter().run(module, OnlySkipped())
    (whole,) = (i for i in module.entry if i.opcode == "concatenate")
    assert [str(x.shape).partition("{")[0] for x in (*whole.operands, whole)] == [
        "f32[8,1]",
        "f32[8,31]",
        "f32[8,32]",
    ]


@pytest.mark.parametrize(
    ("release", "elements", "calls"),
    [
        ("0.4.38", 100, 0),
        ("0.11.1", 120, 1),
        ("0.11.1", 128, 0),
        ("0.12.0.1", 128, 1),
        ("0.12.0.1", 124_999_995, 1),
        ("0.12.0.1", 124_999_996, 0),
    ],
)
def test_a_loop_over_little_data_is_one_kernel(release: str, elements: int, calls: int) -> None:
    module = parse_module(_LOOP.format(n=elements))
    final = compile(
        CompilationInput(module, stage=Stage.BEFORE), replay_config("cpu", xla=release), until=Stage.SCHEDULED
    ).replayed_final
    assert sum(i.opcode == "call" for i in final.entry) == calls


@pytest.mark.parametrize(("size", "fewer"), [("0:12", 1), ("6:18", 1), ("3:12", 0), ("7:10", 0)])
def test_a_slice_of_whole_rows_goes_ahead_of_the_reshape(size: str, fewer: int) -> None:
    start, end = map(int, size.split(":"))
    text = f"""HloModule m
    ENTRY e {{
      p = f32[1,4,6] parameter(0)
      n = f32[1,4,6] sine(p)
      r = f32[24] reshape(n)
      s = f32[{end - start}] slice(r), slice={{[{size}]}}
      ROOT o = f32[{end - start}] negate(s)
    }}"""
    module = parse_module(text)
    config = replay_config("cpu", xla="0.12.0.1")
    before = compile(CompilationInput(module, stage=Stage.BEFORE), config, until=Stage.INPUT).before
    (sliced,) = (i for i in before.entry if i.opcode == "slice")
    assert sliced.shape.rank == 1 + 2 * fewer


def test_products_of_single_pictures_are_chosen_from_one_of_all() -> None:
    """The gradient of a kernel for each feature alone."""
    text = TEXTS["products_single_pictures"]
    found = opcodes(text, "0.12.0.1")
    assert (found["convolution"], found["select"], found["reduce-window"]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("element", "release", "on_gpu", "loops"),
    [
        ("f64", "0.11.1", True, 0),
        ("c64", "0.11.1", True, 0),
        ("c128", "0.11.1", True, 1),
        ("f32", "0.4.38", False, 1),
        ("f32", "0.5.3", False, 1),
        ("f32", "0.6.2", False, 0),
    ],
)
def test_scatters_that_are_loops(element: str, release: str, on_gpu: bool, loops: int) -> None:
    """Of more than 64 bits on a GPU, and on a CPU until 0.5."""
    text = f"""HloModule m
    f {{
      a = {element}[] parameter(0)
      b = {element}[] parameter(1)
      ROOT c = {element}[] add(a, b)
    }}
    ENTRY e {{
      x = {element}[64,8] parameter(0)
      i = s32[4,1] parameter(1)
      u = {element}[4,8] parameter(2)
      ROOT s = {element}[64,8] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{0}},
        scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=f
    }}"""
    found = opcodes(text, release, on_gpu=on_gpu)
    assert (found.get("while", 0), found.get("scatter", 0)) == (loops, 1 - loops)


@pytest.mark.parametrize(
    ("release", "passes"),
    [
        ("0.6.2", "bitcast_dtypes_expander dot-merger reshape-mover transpose-folding"),
        ("0.7.2", "bitcast_dtypes_expander dot-merger transpose-folding convert-mover"),
        ("0.8.3", "reshape-mover transpose-folding"),
    ],
)
def test_the_order_of_simplification_on_gpus(release: str, passes: str) -> None:
    """As XLA logs it."""
    lists = before_fusion("gpu", load_device("h100_sxm"), (), release_of(release))
    tops = [p for top in lists for p in top.flattened() if isinstance(p, Pipeline)]
    (steps,) = (p.steps for p in tops if p.name == "simplification")
    some = "bitcast_dtypes_expander dot-merger reshape-mover transpose-folding convert-mover".split()
    assert [s.name for s in steps if s.name in some] == passes.split()


def test_no_softmax_is_fused_by_triton_until_0_4_35() -> None:
    lists = before_fusion("gpu", load_device("h100_sxm"), (), release_of("0.4.35"))
    assert all(p.name != "triton-softmax-rewriter" for top in lists for p in top.flattened())


def test_every_behaviour_around_fusion_has_a_case() -> None:
    elsewhere = {"transposes_enter_scatters", "undoes_moved_reshapes"}
    assert behaviours(around=True).keys() - elsewhere == CASES.keys()


@pytest.mark.parametrize(
    ("release", "sizes"),
    [("0.9.2", (8, 16, 4)), ("0.10.2", (4, 8, 16)), ("0.11.1", (4, 8, 16)), ("0.12.0.1", (8, 16, 4))],
)
def test_a_transposed_scatter_is_one_into_the_array_as_transposed_in_0_10_and_0_11(
    release: str, sizes: tuple[int, ...]
) -> None:
    module = parse_module(TEXTS["transposes_enter_scatters"])
    options = Options(fold_transpose_into_scatter=True)
    AlgebraicSimplifier(options, release=release_of(release)).run(module, Recorder())
    (scatter,) = (x for x in module.entry if x.opcode == "scatter")
    assert scatter.sizes == sizes
    assert list(scatter.attributes["scatter_dims_to_operand_dims"]) == [sizes.index(8)]
    assert scatter.operands[2].sizes == (2, *(1 if n == 8 else n for n in sizes))


@pytest.mark.parametrize(("release", "reshapes"), [("0.5.3", 5), ("0.6.2", 1), ("0.11.1", 1)])
def test_a_reshape_is_moved_past_its_like_since_0_6_2(release: str, reshapes: int) -> None:
    """Before, the simplifier removes the reshape back and the one that it undoes."""
    module = parse_module("""HloModule m
    ENTRY e {
      x = f32[8,4] parameter(0)
      y = f32[8,4] parameter(1)
      a = f32[32] reshape(x)
      b = f32[32] reshape(y)
      c = f32[32] add(a, b)
      ROOT r = f32[32] reverse(c), dimensions={0}
    }""")
    assert ReshapeMover(release=release_of(release)).run(module, OnlySkipped())
    assert sum(i.opcode == "reshape" for i in module.entry) == reshapes


@pytest.mark.parametrize(("release", "kind"), [("0.6.2", "kInput"), ("0.11.1", "kCustom")])
def test_sums_go_to_triton_after_fusion_since_0_7(release: str, kind: str) -> None:
    text = """HloModule m
    ENTRY e {
      x = s32[200] parameter(0)
      ROOT p = s32[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
    }"""
    config = replay_config("gpu", "h100_sxm", xla=release)
    given = CompilationInput(parse_module(text), stage=Stage.BEFORE)
    final = compile(given, config, until=Stage.SCHEDULED).replayed_final
    assert [i.attributes.raw("kind") for i in final.entry if i.opcode == "fusion"] == [kind]


@pytest.mark.parametrize(
    ("release", "device", "rows"),
    [("0.9.2", "h100_sxm", 4), ("0.9.2", "v100", 8), ("0.10.2", "h100_sxm", 4), ("0.8.3", "v100", 8)],
)
def test_products_that_triton_takes_keep_their_sizes(release: str, device: str, rows: int) -> None:
    """XLA pads f16 products to multiples of 8 for cuBLAS alone."""
    text = """HloModule m
    ENTRY e {
      x = f16[4,512] parameter(0)
      y = f16[512,768] parameter(1)
      ROOT p = f16[4,768] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }"""
    given = CompilationInput(parse_module(text), stage=Stage.BEFORE)
    before = compile(given, replay_config("gpu", device, xla=release), until=Stage.INPUT).before
    (product,) = (i for i in before.entry if i.opcode in ("fusion", "custom-call"))
    assert product.operands[0].shape.dimensions[0] == rows


@pytest.mark.parametrize(("release", "products"), [("0.10.2", 2), ("0.11.1", 1)])
def test_products_are_merged_below_reshapes_since_0_11(release: str, products: int) -> None:
    module = parse_module(TEXTS["products_merged_below"])
    DotMerger(1 << 25, release=release_of(release)).run(module, OnlySkipped())
    assert sum(i.opcode == "dot" for i in module.entry) == products


@pytest.mark.parametrize(("release", "side", "dots"), [("0.10.2", 0, 2), ("0.10.2", 1, 1), ("0.11.1", 0, 1)])
def test_products_of_an_array_and_of_its_transpose_are_one(release: str, side: int, dots: int) -> None:
    text = TEXTS["products_array_transpose"]
    module = parse_module(text.replace("lhs_contracting_dims={0}", f"lhs_contracting_dims={{{side}}}"))
    DotMerger(1 << 25, release=release_of(release)).run(module, OnlySkipped())
    assert sum(i.opcode == "dot" for i in module.entry) == dots


@pytest.mark.parametrize(("release", "products", "chain"), [("0.10.2", 2, 2), ("0.11.1", 1, 0)])
def test_before_0_11_merged_products_have_one_layout_and_what_follows_stays(
    release: str, products: int, chain: int
) -> None:
    """Their source: `TryMergeOperand`, `TryMergeSameOperand`; `SimplifyConsumerChain` came with 0.11."""
    text = """HloModule m
    ENTRY e {{
      x = f32[64,16]{{1,0}} parameter(0)
      y = f32[16,8]{{1,0}} parameter(1)
      z = f32[16,8]{{1,0}} parameter(2)
      p = f32[64,8]{{1,0}} dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      q = f32[64,8]{{{}}} dot(x, z), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
      a = f32[8,64]{{1,0}} transpose(p), dimensions={{1,0}}
      b = f32[64,8]{{1,0}} transpose(a), dimensions={{1,0}}
      ROOT t = (f32[64,8]{{1,0}}, f32[64,8]{{{}}}) tuple(b, q)
    }}"""
    for layout, count in (("0,1", products), ("1,0", 1)):
        module = parse_module(text.format(layout, layout))
        DotMerger(1 << 25, release=release_of(release)).run(module, OnlySkipped())
        assert sum(i.opcode == "dot" for i in module.entry) == count
        assert count > 1 or sum(i.opcode == "transpose" for i in module.entry) == chain


@pytest.mark.parametrize(
    "case", ["loops_share_a_start", "branches_differ", "a_branch_decides", "a_loop_decides"]
)
def test_layouts_across_calls_are_those_of_xla_0_12(case: str) -> None:
    module, expected = parse_module(TEXTS[case]), parse_module(TEXTS[f"{case}_laid_out"])
    layouts = GpuLayoutAssignment(release=release_of("0.12.0.1"), device=load_device("h100_sxm"))
    assert layouts.run(module, Recorder())
    assert same_structure(module, expected)
