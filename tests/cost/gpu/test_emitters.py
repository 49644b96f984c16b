"""Which emitter takes a reduction or a transpose, and its launch: both sides of each of XLA's numbers."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.gpu.launch import elementwise_launch, grid
from hlofuse.cost.gpu.reductions import (
    Reduction,
    faster_than_elemental,
    is_race_free,
    reduction_launch,
    reduction_of,
    shared_memory_of_reduction,
)
from hlofuse.cost.gpu.shapes import ShapeFacts
from hlofuse.cost.gpu.transposes import (
    TiledTranspose,
    bytewise_transpose,
    packed_tiles,
    tiled_transpose,
    transpose_launch,
)
from hlofuse.ir.shape import Layout, Shape

H100 = load_device("h100_sxm")


def shape(*sizes: int, element_type: str = "f32") -> Shape:
    return Shape(element_type, sizes, Layout(tuple(reversed(range(len(sizes))))))


@pytest.mark.parametrize(
    ("sizes", "reduced", "is_row", "found"),
    [
        ((8, 64), (0, 1), True, (1, 1, 512)),
        ((8, 64), (1,), True, (1, 8, 64)),
        ((8, 64), (0,), False, (1, 8, 64)),
        ((4, 8, 64), (1,), False, (4, 8, 64)),
        ((4, 8, 64), (0, 2), True, (4, 8, 64)),
        ((4, 8, 64), (1, 2), True, (1, 4, 512)),
        ((4, 8, 64), (0, 1), False, (1, 32, 64)),
        ((1, 64), (1,), True, (1, 1, 64)),
        ((4, 8, 1), (1, 2), True, (1, 4, 8)),
    ],
)
def test_a_reduction_is_of_rows_or_of_columns(
    sizes: tuple[int, ...], reduced: tuple[int, ...], is_row: bool, found: tuple[int, int, int]
) -> None:
    assert reduction_of(shape(*sizes), reduced)[0] == Reduction(is_row, found)


def test_dimensions_that_do_not_lie_together_are_no_one_reduction() -> None:
    assert reduction_of(shape(4, 8, 64), (1,))[1]
    assert not reduction_of(shape(4, 8, 16, 64), (0, 2))[1]
    assert reduction_of(shape(4, 8, 16, 64), (1, 2))[1]


@pytest.mark.parametrize(
    ("is_row", "major", "minor", "faster"),
    [
        (True, 1, 32, True),
        (True, 1, 31, False),
        (True, 1, 16, True),
        (True, 1, 0, False),
        (False, 32, 32, True),
        (False, 31, 32, False),
        (False, 64, 31, True),
        (False, 63, 31, False),
        (False, 128, 7, True),
        (False, 127, 7, False),
        (False, 127, 8, True),
        (False, 256, 2, True),
        (False, 255, 2, False),
        (False, 255, 3, True),
    ],
)
def test_small_reductions_are_emitted_as_loops(is_row: bool, major: int, minor: int, faster: bool) -> None:
    assert faster_than_elemental(H100, Reduction(is_row, (1, major, minor))) is faster


@pytest.mark.parametrize(
    ("reduction", "free"),
    [
        (Reduction(True, (8, 1, 16384)), True),
        (Reduction(True, (8, 1, 16385)), False),
        (Reduction(True, (9, 1, 16384)), False),
        (Reduction(False, (1, 4096, 64)), True),
        (Reduction(False, (1, 4097, 64)), False),
    ],
)
def test_one_block_computes_an_element_up_to_a_bound(reduction: Reduction, free: bool) -> None:
    assert is_race_free(H100, reduction) is free


def test_shared_memory_of_rows_and_columns() -> None:
    assert shared_memory_of_reduction(Reduction(True, (1, 8, 64)), 4, False) == 32 * 4
    assert shared_memory_of_reduction(Reduction(False, (1, 8, 64)), 4, True) == 32 * 129 * 4
    assert shared_memory_of_reduction(Reduction(False, (1, 8, 64)), 4, False) == 4 * 32 * 33 * 4


@pytest.mark.parametrize(
    ("is_row", "sizes", "bits", "is_complex", "launch"),
    [
        # Columns: vectors of two of 32 bits, of four of 16, where a warp finds enough.
        (False, (3, 100, 64), 32, False, (3, 1024)),
        (False, (3, 100, 62), 32, False, (6, 1024)),
        (False, (3, 100, 66), 32, False, (6, 1024)),
        (False, (1, 100, 65), 32, False, (3, 1024)),
        (False, (1, 100, 128), 16, False, (1, 1024)),
        (False, (1, 100, 126), 16, False, (2, 1024)),
        (False, (1, 100, 130), 16, False, (3, 1024)),
        (False, (1, 100, 128), 32, True, (4, 1024)),
        (False, (1, 100, 128), 64, False, (4, 1024)),
        # Few columns: a block takes whole rows.
        (False, (3, 100, 8), 32, False, (3, 128)),
        # Rows: 16 elements a thread, 256 threads for several rows.
        (True, (1, 8, 64), 32, False, (1, 256)),
        (True, (1, 4096, 1024), 32, False, (1024, 256)),
        (True, (1, 4096, 2048), 32, False, (2048, 256)),
        (True, (1, 4096, 4096), 32, False, (4096, 256)),
        (True, (1, 4096, 2049), 32, False, (4096, 160)),
        (True, (1, 16, 16384), 32, False, (16, 1024)),
        (True, (1, 16, 32768), 32, False, (32, 1024)),
        # Rows that a part of a warp reads.
        # As vectors, unless that leaves cores without a block (132).
        (True, (1, 2112, 32), 32, False, (132, 256)),
        (True, (1, 2096, 32), 32, False, (262, 256)),
        (True, (1, 100_000, 32), 32, False, (6250, 256)),
    ],
)
def test_launches_of_reductions(
    is_row: bool, sizes: tuple[int, int, int], bits: int, is_complex: bool, launch: tuple[int, int]
) -> None:
    assert reduction_launch(H100, Reduction(is_row, sizes), bits, bits, is_complex) == launch


@pytest.mark.parametrize(
    ("elements", "unroll", "found"),
    [
        (0, 1, (1, 1)),
        (1, 1, (1, 1)),
        (2, 1, (1, 2)),
        (128, 1, (1, 128)),
        (129, 1, (2, 128)),
        (512, 4, (1, 128)),
        (516, 4, (2, 128)),
    ],
)
def test_a_grid_has_blocks_of_four_warps(elements: int, unroll: int, found: tuple[int, int]) -> None:
    assert grid(H100, elements, unroll) == found
    assert grid(H100.with_overrides({"block_dim_limit_x": "100"}), 128 * 250, 1) == (3 * 84, 128)
    assert elementwise_launch(ShapeFacts(shape(max(elements, 1)), 0), "sort").blocks == -(
        -max(elements, 1) // 128
    )


@given(st.integers(2, 10**9), st.sampled_from([1, 2, 4, 8]))
def test_a_grid_covers_all_elements(elements: int, unroll: int) -> None:
    blocks, threads = grid(H100, elements, unroll)
    assert blocks * threads * unroll >= elements
    assert (blocks - 1) * threads * unroll < elements + H100.block_dim_limit_x * threads * unroll


def swapped(rows: int, columns: int, element_type: str = "f32") -> TiledTranspose | None:
    before = shape(rows, columns, element_type=element_type)
    return tiled_transpose(before, shape(columns, rows, element_type=element_type), (1, 0))


@pytest.mark.parametrize(
    ("rows", "columns", "tiled"),
    [(16, 16, True), (15, 500, False), (8, 1024, True), (8, 1023, False), (1024, 8, True), (7, 4096, False)],
)
def test_a_transpose_of_narrow_arrays_is_a_loop(rows: int, columns: int, tiled: bool) -> None:
    assert (swapped(rows, columns) is not None) is tiled


@pytest.mark.parametrize(
    ("minor", "rows", "tiled"), [(2, 64, True), (3, 64, False), (2, 2, True), (2, 1, False)]
)
def test_elements_that_stay_together_are_at_most_64_bits(minor: int, rows: int, tiled: bool) -> None:
    found = tiled_transpose(shape(64, rows, minor), shape(rows, 64, minor), (1, 0, 2))
    assert (found is not None) is tiled


def test_a_tile_of_shared_memory_has_a_column_more() -> None:
    found = swapped(64, 256)
    assert found is not None
    assert found.shared_memory == 32 * 33 * 4
    assert transpose_launch(H100, found, [4]) == (2 * 8, 128)
    for sizes in ((64, 65), (65, 64)):
        together = tiled_transpose(shape(*sizes, 2), shape(*sizes[::-1], 2), (1, 0, 2))
        assert together is not None
        assert together.shared_memory == 32 * 33 * 8
        assert transpose_launch(H100, together, [8]) == (2 * 3, 128)


def test_narrow_elements_are_packed_into_banks() -> None:
    found = swapped(256, 512, "bf16")
    assert found is not None
    assert packed_tiles(found.dimensions, found.permutation, 16) is not None
    assert found.shared_memory == 32 * 4 * 32 * 2
    assert transpose_launch(H100, found, [2]) == ((256 // 64) * (512 // 64), 128)
    assert packed_tiles(found.dimensions, found.permutation, 32) is None
    assert swapped(18, 17, "s4") is None
    assert (swapped(18, 17, "s8") or found).shared_memory == 32 * 33
    assert swapped(20, 512, "bf16") is not None


@given(
    st.permutations(range(3)),
    st.lists(st.integers(1, 200), min_size=3, max_size=3),
    st.sampled_from([4, 8, 16]),
)
def test_a_packed_tile_lies_in_the_array_and_its_sides_in_the_banks(
    order: list[int], sizes: list[int], bits: int
) -> None:
    """Each side has at most all banks, and at least ten of them; none is cut in the middle of a bank."""
    if (found := packed_tiles(tuple(sizes), tuple(order), bits)) is None:
        return
    vector = 32 // bits
    dimensions, tiles = found
    assert all(1 <= tile <= size for size, tile in zip(dimensions, tiles, strict=True))
    columns = tiles[-2]
    rows = prod(tiles) // columns
    assert 10 * vector <= min(rows, columns) <= max(rows, columns) <= 32 * vector
    assert rows % vector == columns % vector == 0


def test_threads_take_squares_of_narrow_elements_where_there_are_enough() -> None:
    """8,448 blocks of 32 by 32 are four elements for each thread that an H100 holds at once."""
    two = {(2944, 2944): 46 * 46, (2944, 2912): 92 * 91, (2944, 2945): 92 * 93, (2945, 2944): 93 * 92}
    one = {(2944, 2946): 46 * 47, (5888, 5888): 46 * 46}
    for width, cases in ((1, one), (2, two), (4, {(2944, 2944): 92 * 92})):
        for sizes, blocks in cases.items():
            assert transpose_launch(H100, TiledTranspose(sizes, (1, 0), 0, 0), [width]) == (blocks, 128)


@pytest.mark.parametrize(
    ("sizes", "element_type", "bytes_together"),
    [
        # Elements that stay together are at most 64 bits, and those of the narrower side at least 16 bytes.
        ((64, 2, 2), "f32", 8),
        ((64, 1, 2), "f32", None),
        ((64, 64, 3), "f32", None),
        ((64, 16, 1), "s8", 1),
        ((64, 15, 1), "s8", None),
        ((64, 64, 8), "s8", 8),
        ((64, 64, 9), "s8", None),
        ((64, 64, 1), "f64", 8),
        # Else the narrower side has 16 elements, or 8 where both have 64 times 128 together.
        ((16, 16), "f32", 4),
        ((15, 546), "f32", None),
        ((15, 547), "f16", 2),
        ((8, 1024), "f32", 4),
        ((8, 1023), "f32", None),
        ((7, 9000), "f32", None),
    ],
)
def test_transposes_before_they_were_packed_count_bytes(
    sizes: tuple[int, ...], element_type: str, bytes_together: int | None
) -> None:
    order = (1, 0, 2)[: len(sizes)]
    before = shape(sizes[1], sizes[0], *sizes[2:], element_type=element_type)
    found = bytewise_transpose(before, shape(*sizes, element_type=element_type), order)
    wanted = TiledTranspose(sizes, order, 0, 32 * 33 * bytes_together) if bytes_together else None
    assert found == wanted
