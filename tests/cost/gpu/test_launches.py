"""Launches of whole kernels by hand: emitters of two generations, updates in place, scatters, Blackwell."""

from __future__ import annotations

import pytest

from hlofuse.cost.gpu.device import DeviceDescription, load_device
from hlofuse.cost.gpu.launch import Launch
from hlofuse.cost.gpu.merging import kernel_model
from hlofuse.ir.record import replace
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import release_of

H100 = load_device("h100_sxm")
B200 = load_device("b200")
REGIONS = """HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
"""


def launch(
    line: str, *operands: str, device: DeviceDescription = H100, release: str = "0.11.1", regions: str = ""
) -> Launch:
    """The launch of a fusion of the lines up to the root `r`."""
    parameters = "".join(f"  p{i} = {t} parameter({i})\n" for i, t in enumerate(operands))
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    result = line.rpartition("ROOT r = ")[2]
    end = result.index(") ") + 1 if result.startswith("(") else result.index(" ")
    text = (
        f"{REGIONS}{regions}c {{\n{parameters}{line}\n}}\n"
        f"ENTRY e {{\n{parameters}  ROOT f = {result[:end]} fusion({names}), kind=kLoop, calls=c\n}}\n"
    )
    used = release_of(release)
    return kernel_model(device, used).launch(parse_module(text).entry.root)


ROOT = "  ROOT r = "
ZERO = "  z = f32[] constant(0)\n"


def reduction(sizes: str, dimensions: str, result: str) -> tuple[str, str]:
    return (
        f"{ZERO}{ROOT}f32[{result}] reduce(p0, z), dimensions={{{dimensions}}}, to_apply=sum",
        f"f32[{sizes}]",
    )


@pytest.mark.parametrize(
    ("sizes", "dimensions", "result", "wanted"),
    [
        # Rows: 16 elements a thread, two at a time; 256 threads for several rows.
        ("8,4096", "1", "8", (8, 256)),
        ("100,2048", "1", "100", (50, 256)),
        ("100,2049", "1", "100", (100, 160)),
        ("16,65536", "1", "16", (64, 1024)),
        ("16,16384", "1", "16", (16, 1024)),
        ("1024,16", "1", "1024", (64, 256)),
        ("5,16", "1", "5", (1, 96)),  # as many rows as there are, of whole warps
        ("17,16", "1", "17", (2, 256)),
        # A thread takes up to eight of the first dimension.
        ("8,64,512", "0,2", "64", (8, 256)),
        ("9,64,512", "0,2", "64", (2 * 8, 256)),
        # Columns: tiles of 128 rows for each of 32 threads, 32 columns wide.
        ("4096,256", "0", "256", (8, 1024)),
        ("4097,256", "0", "256", (16, 1024)),
        ("3,4096,33", "1", "3,33", (6, 1024)),
    ],
)
def test_reductions_by_the_emitters_of_llvm(
    sizes: str, dimensions: str, result: str, wanted: tuple[int, int]
) -> None:
    line, operand = reduction(sizes, dimensions, result)
    found = launch(line, operand, release="0.4.35")
    assert (found.kind, found.blocks, found.threads) == ("reduction", *wanted)


@pytest.mark.parametrize(
    ("line", "operand", "wanted"),
    [
        ("f32[64,128] transpose(p0), dimensions={1,0}", "f32[128,64]", ("transpose", 2 * 4, 128)),
        ("f32[65,128] transpose(p0), dimensions={1,0}", "f32[128,65]", ("transpose", 3 * 4, 128)),
        ("f32[3,64,128] transpose(p0), dimensions={0,2,1}", "f32[3,128,64]", ("transpose", 3 * 2 * 4, 128)),
        ("f32[64,5,128] transpose(p0), dimensions={2,1,0}", "f32[128,5,64]", ("transpose", 2 * 5 * 4, 128)),
        ("f32[5,128,64] transpose(p0), dimensions={1,0,2}", "f32[128,5,64]", ("loop", 320, 128)),
        ("f32[1000] negate(p0)", "f32[1000]", ("loop", 8, 128)),
        ("s4[1000] negate(p0)", "s4[1000]", ("loop", 4, 128)),  # a thread writes whole bytes
        ("s2[1001] negate(p0)", "s2[1001]", ("loop", 2, 128)),
        ("f32[10,100] concatenate(p0, p0), dimensions={0}", "f32[5,100]", ("concatenate", 4, 128)),
    ],
)
def test_other_kernels_by_the_emitters_of_llvm(line: str, operand: str, wanted: tuple[str, int, int]) -> None:
    found = launch(ROOT + line, operand, release="0.4.35")
    assert (found.kind, found.blocks, found.threads) == wanted


@pytest.mark.parametrize("release", ["0.4.35", "0.11.1"])
def test_a_concatenation_of_five_is_a_loop(release: str) -> None:
    four, five = (
        launch(
            f"{ROOT}f32[{n * 5},100] concatenate({', '.join(['p0'] * n)}), dimensions={{0}}",
            "f32[5,100]",
            release=release,
        )
        for n in (4, 5)
    )
    assert (four.kind, four.blocks * four.threads) == ("concatenate", 512)
    assert (five.kind, five.blocks * five.threads) == ("loop", 20 * 128)


@pytest.mark.parametrize("release", ["0.4.35", "0.11.1"])
def test_an_update_in_place_takes_a_thread_for_each_updated_element(release: str) -> None:
    line = f"{ROOT}f32[100,100] dynamic-update-slice(p0, p1, p2, p2)"
    found = launch(line, "f32[100,100]", "f32[10,100]", "s32[]", release=release)
    assert (found.kind, found.blocks, found.threads) == ("loop", 8, 128)
    flat = f"{line.replace('ROOT r =', 'u =')}\n{ROOT}f32[10000] bitcast(u)"
    assert launch(flat, "f32[100,100]", "f32[10,100]", "s32[]", release=release) == found
    both = f"  n = f32[100,100] negate(p0)\n{ROOT}f32[100,100] dynamic-update-slice(n, p1, p2, p2)"
    found = launch(both, "f32[100,100]", "f32[10,100]", "s32[]", release=release)
    assert found.blocks == -(-10_000 // 128)


def test_outputs_that_are_slices_of_like_arrays_are_one_kernel() -> None:
    slices = (
        "  s = f32[40] slice(p0), slice={[0:40]}\n  t = f32[60] slice(p1), slice={[STRIDE]}\n"
        f"{ROOT}(f32[40], f32[60]) tuple(s, t)"
    )
    for size, stride, wanted in [
        ("1000", "100:160", ("slices", 8, 128)),
        ("1001", "100:160", ("loop", 1, 40)),
        ("1000", "100:220:2", ("loop", 1, 40)),
    ]:
        found = launch(slices.replace("STRIDE", stride), "f32[1000]", f"f32[{size}]", release="0.4.35")
        assert (found.kind, found.blocks, found.threads) == wanted
    single = launch(f"{ROOT}f32[40] slice(p0), slice={{[0:40]}}", "f32[1000]", release="0.4.35")
    assert (single.kind, single.blocks, single.threads) == ("loop", 1, 40)


MANY = H100.core_count * H100.threads_per_core_limit
"""Elements from which on each thread takes four."""


@pytest.mark.parametrize(
    ("elements", "each"), [(MANY, 4), (MANY - 4, 1), (MANY + 1, 1), (MANY + 2, 2), (4 * MANY, 4)]
)
def test_threads_take_four_elements_where_there_are_enough(elements: int, each: int) -> None:
    found = launch(f"{ROOT}f32[{elements}] negate(p0)", f"f32[{elements}]")
    assert (found.blocks, found.threads) == (-(-elements // (128 * each)), 128)


@pytest.mark.parametrize(
    ("operation", "operand"),
    [
        ("reduce(p0, z), dimensions={0}, to_apply=sum", f"f32[2,{MANY}]"),
        ("pad(p0, z), padding=4_0", f"f32[{MANY - 4}]"),
        (f"slice(p0), slice={{[0:{2 * MANY}:2]}}", f"f32[{2 * MANY}]"),
    ],
)
def test_a_loop_with_these_in_it_is_unrolled(operation: str, operand: str) -> None:
    found = launch(f"{ZERO}  s = f32[{MANY}] {operation}\n{ROOT}f32[{MANY}] negate(s)", operand)
    assert (found.kind, found.blocks) == ("loop", MANY // (128 * 4))


@pytest.mark.parametrize(("parts", "each"), [(10, 4), (11, 1)])
def test_a_concatenation_of_many_stays_rolled(parts: int, each: int) -> None:
    names = ", ".join(["p0"] * parts)
    found = launch(f"{ROOT}f32[{parts},{MANY}] concatenate({names}), dimensions={{0}}", f"f32[1,{MANY}]")
    assert (found.kind, found.blocks) == ("loop", parts * MANY // (128 * each))


BIG = B200.core_count * B200.threads_per_core_limit * 32


@pytest.mark.parametrize(
    ("element_type", "toolkit", "each"),
    [
        ("f32", (12, 9, 0), 8),
        ("f32", (12, 8, 0), 4),
        ("f64", (12, 9, 0), 4),
        ("bf16", (12, 9, 0), 16),
        ("bf16", (12, 8, 0), 8),
        ("s8", (12, 9, 0), 32),
        ("s8", (12, 8, 0), 16),
    ],
)
def test_blackwell_unrolls_to_a_vector(element_type: str, toolkit: tuple[int, int, int], each: int) -> None:
    """Of 32 bytes, with an older toolkit of 16: at least eight elements narrower than a quarter of it."""
    device = replace(B200, toolkit_version=toolkit)
    found = launch(f"{ROOT}{element_type}[{BIG}] negate(p0)", f"{element_type}[{BIG}]", device=device)
    assert found.blocks == BIG // (128 * each)


@pytest.mark.parametrize(
    ("release", "minor", "each"),
    [
        *(
            ("0.11.1", minor, each)
            for minor, each in [(4, 8), (9, 8), (15, 8), (16, 16), (31, 16), (32, 32), (64, 32)]
        ),
        *(("0.8.3", minor, each) for minor, each in [(4, 4), (7, 4), (9, 8), (64, 8)]),
    ],
)
def test_blackwell_unrolls_a_transpose_as_far_as_what_it_moves_at_once(
    release: str, minor: int, each: int
) -> None:
    rows = BIG // (6 * minor * 32) * 64
    line = f"{ROOT}s8[{rows},3,2,{minor}] transpose(p0), dimensions={{0,2,1,3}}"
    found = launch(
        line, f"s8[{rows},2,3,{minor}]", device=replace(B200, toolkit_version=(12, 9, 0)), release=release
    )
    assert (found.kind, found.blocks) == ("loop", -(-rows * 6 * minor // (128 * each)))


@pytest.mark.parametrize(
    ("release", "slices", "window", "flags", "wanted"),
    [
        ("0.4.35", 100, 64, "", 100 * 64 // 128),
        ("0.4.35", 5000, 64, "", 5000 * 64 // 128),
        ("0.11.1", 100, 64, "", 100 * 64 // 128),
        ("0.11.1", 5000, 64, "", 5000 * 64 // 512),
        # 0.5: a warp for each slice of more than half a warp's vectors, where 528 warps are too few.
        ("0.5.0", 1000, 16, "", 1000 * 16 // 128),
        ("0.5.0", 1000, 17, "", 1000 // 4),
        ("0.5.0", 528, 64, "", 528 * 64 // 128),
        ("0.5.0", 529, 64, "", 133),
        # Later for sorted indices: as many for each warp as the 1,000 places have, in vectors of four.
        ("0.11.1", 4000, 64, ", indices_are_sorted=true", 4000 // (4 * 4)),
        ("0.11.1", 5000, 64, ", indices_are_sorted=true", 157),
        ("0.11.1", 528, 64, ", indices_are_sorted=true", 528 * 64 // 128),
        ("0.11.1", 4000, 64, ", indices_are_sorted=true, unique_indices=true", 4000 * 64 // 128),
    ],
)
def test_scatters(release: str, slices: int, window: int, flags: str, wanted: int) -> None:
    line = (
        f"{ROOT}f32[1000,{window}] scatter(p0, p1, p2), update_window_dims={{1,2}}, "
        f"inserted_window_dims={{}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, "
        f"to_apply=sum{flags}"
    )
    given = f"f32[1000,{window}]", f"s32[{slices},1]", f"f32[{slices},1,{window}]"
    found = launch(line, *given, release=release)
    assert (found.kind, found.blocks, found.threads) == ("scatter", wanted, 128)


@pytest.mark.parametrize(
    ("places", "slices", "wanted"),
    [
        # Each warp takes as many of the slices as there are for each of 1,000 places, with one index a
        # multiple of four where there are more.
        ("1000", 4000, 4000 // (4 * 4)),
        ("1000", 4001, -(-4001 // (8 * 4))),
        ("1000", 3000, 3000 // (3 * 4)),
        ("50,20", 4000, 4000 // (4 * 4)),
        ("50,20", 4001, -(-4001 // (5 * 4))),
    ],
)
@pytest.mark.parametrize("arrays", [1, 2, 3])
def test_sorted_scatters_of_several_arrays(arrays: int, places: str, slices: int, wanted: int) -> None:
    dimensions = places.count(",") + 1
    indices, update = f"s32[{slices},{dimensions}]", f"f32[{slices},{'1,' * dimensions}64]"
    window = ",".join(str(k + 1) for k in range(dimensions + 1))
    places = f"f32[{places},64]"
    result, given = ", ".join([places] * arrays), [*[places] * arrays, indices, *[update] * arrays]
    to = ",".join(map(str, range(dimensions)))
    operands = ", ".join(f"p{k}" for k in range(len(given)))
    line = f"""{ROOT}{f"({result})" if arrays > 1 else result} scatter({operands}),
      update_window_dims={{{window}}}, inserted_window_dims={{}},
      scatter_dims_to_operand_dims={{{to}}}, indices_are_sorted=true,
      index_vector_dim=1, to_apply=sums{arrays}"""
    letters = [f"{x}{k}" for x in "ab" for k in range(arrays)]
    region = "".join(f"  {x} = f32[] parameter({k})\n" for k, x in enumerate(letters))
    sums = ", ".join(f"a{k}" for k in range(arrays))
    root = "tuple" if arrays > 1 else "copy"
    kind = f"({', '.join(['f32[]'] * arrays)})" if arrays > 1 else "f32[]"
    sums = f"sums{arrays} {{\n{region}  ROOT c = {kind} {root}({sums})\n}}\n"
    found = launch(line, *given, regions=sums)
    assert (found.kind, found.blocks, found.threads) == ("scatter", wanted, 128)


TRITON_CONFIG = (
    '{"fusion_backend_config":{"kind":"__triton","block_level_fusion_config":'
    '{"num_warps":"4","output_tiles":[{"sizes":["16","64"]}]}}}'
)


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (TRITON_CONFIG, Launch("triton", 7 * 2, 4 * 32)),
        ('{"fusion_backend_config":{"kind":"__triton_gemm"}}', Launch("triton", 79, 128)),
        ('{"fusion_backend_config":{"kind":"__custom_fusion"}}', Launch("custom", 79, 128)),
        ('{"fusion_backend_config":{"kind":"__cudnn$fusion"}}', Launch("cudnn", 79, 128)),
        ('{"fusion_backend_config":{"kind":"other"}}', Launch("loop", 79, 128)),
    ],
)
def test_a_backend_config_names_the_emitter(config: str, wanted: Launch) -> None:
    module = parse_module(
        f"""{REGIONS}c {{
  p0 = f32[100,101] parameter(0)
  ROOT r = f32[100,101] negate(p0)
}}
ENTRY e {{
  p0 = f32[100,101] parameter(0)
  ROOT f = f32[100,101] fusion(p0), kind=kCustom, calls=c, backend_config={config}
}}
"""
    )
    assert kernel_model(H100, release_of("0.11.1")).launch(module.entry.root) == wanted


@pytest.mark.parametrize(
    ("text", "version"),
    [("12", (12, 0, 0)), ("12.9", (12, 9, 0)), ("12.9.1", (12, 9, 1)), ("12.9.1.4", (12, 9, 1))],
)
def test_a_toolkit_has_three_numbers(text: str, version: tuple[int, int, int]) -> None:
    assert B200.with_overrides({"toolkit_version": text}).toolkit_version == version
