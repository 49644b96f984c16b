"""Where CUB's radix sort is taken to be faster than XLA's own (`ShouldRewriteCompatibleSort` in
`xla/backends/gpu/transforms/sort_rewriter.cc`)."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.shape import Shape

_MANY = 16384
"""Elements in all, of a device of which nothing is known."""

# Rows and elements of each of which there must be more; one row is another matter.
_Steps = Sequence[tuple[int, int]]
_HOPPER: dict[int, _Steps] = {
    16: ((12, 1 << 16), (14, 1 << 15), (16, 1 << 14), (18, 1 << 13), (33, 1 << 12), (66, 1 << 11)),
    32: ((26, 1 << 17), (31, 1 << 16), (38, 1 << 15), (44, 1 << 14), (52, 1 << 13)),
    64: ((55, 1 << 17), (70, 1 << 16), (92, 1 << 15), (354, 1 << 14)),
}
_HOPPER_ONE_ROW = {16: 1 << 9, 32: 22000, 64: 1 << 17}
_AMPERE: dict[int, _Steps] = {
    16: ((9, 1 << 17), (13, 1 << 13), (27, 1 << 12), (54, 1 << 11)),
    32: ((24, 1 << 17), (30, 1 << 16), (36, 1 << 15), (39, 1 << 14), (52, 1 << 13), (144, 1 << 12)),
    64: ((46, 1 << 17), (55, 1 << 16), (72, 1 << 15), (289, 1 << 14)),
}
_AMPERE_ONE_ROW = {16: 1 << 16, 32: 1 << 15, 64: 1 << 16}
_BLACKWELL_32: _Steps = ((26, 1 << 17), (31, 1 << 16), (38, 1 << 15), (44, 1 << 14), (52, 1 << 13))


def is_faster_by_radix(shape: Shape, pair: bool, device: DeviceDescription) -> bool:
    """Of operands of this shape, the first's, sorted along their last dimension."""
    size = shape.dimensions[-1]
    if size == 0:
        return False
    rows = shape.element_count // size
    if device.is_blackwell:
        return _on_blackwell(shape.bit_width, rows, size, device, pair)
    if device.compute_capability[0] == 9:
        return _on_hopper(shape.bit_width, rows, size, device)
    if device.compute_capability[0] == 8:
        return _on_ampere(shape.bit_width, rows, size, device)
    return shape.element_count > _MANY


def _beyond(steps: _Steps, rows: int, size: int) -> bool:
    return any(rows > least and size > each for least, each in steps)


def _on_hopper(bits: int, rows: int, size: int, device: DeviceDescription) -> bool:
    if bits == 8:
        return rows == 1 or (size > 1300 and (rows > 8 or size < 26000))
    if bits not in _HOPPER:
        return False
    if bits == 32 and 88 < rows <= device.core_count and size > 1 << 12:
        return True
    if bits == 64 and 160 < rows <= 2 * device.core_count and size > 1 << 14:
        return True
    return (rows == 1 and size > _HOPPER_ONE_ROW[bits]) or _beyond(_HOPPER[bits], rows, size)


def _on_ampere(bits: int, rows: int, size: int, device: DeviceDescription) -> bool:
    if bits == 8:
        return rows == 1 or (size > 1000 and (rows > 5 or size < 43000))
    if bits not in _AMPERE:
        return False
    if bits == 64 and 138 < rows <= 2 * device.core_count and size > 1 << 14:
        return True
    return (rows == 1 and size > _AMPERE_ONE_ROW[bits]) or _beyond(_AMPERE[bits], rows, size)


def _on_blackwell(bits: int, rows: int, size: int, device: DeviceDescription, pair: bool) -> bool:
    if size <= 1024:
        return False
    if bits == 16:
        return size >= 4096
    if bits == 32:
        if rows == 1:
            return size >= 4096
        for least, each in _BLACKWELL_32:
            if size >= each:
                return rows > least
        return size >= 4096 and 88 < rows < 128
    if bits == 64:
        return not pair and size >= 16384
    return _on_hopper(bits, rows, size, device)
