"""What is gathered out of padded dimensions that slices hold whole is padded afterwards."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.cost.gpu.shapes import reshape_is_bitcast
from hlofuse.ir.attributes.window import PaddingConfig, PaddingDimension
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.common import make
from hlofuse.passes.common.shapes import unmodified_dimensions, with_layout

_NUMBERS = (
    *("offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims"),
    *("start_indices_batching_dims", "index_vector_dim", "indices_are_sorted"),
)


def gather_ahead_of_pad(c: Context, gather: Instruction) -> bool:
    """`HandleGather`: the operand is a pad, or a reshape of one that leaves the padded dimensions alone."""
    pad, indices = gather.operands
    reshape = None
    places = {d: d for d in range(pad.shape.rank)}
    if pad.opcode == "reshape":
        reshape, pad = pad, pad.operands[0]
        if not reshape_is_bitcast(pad.shape, reshape.shape):
            return False
        places = dict(unmodified_dimensions(pad.shape, reshape.shape))
    if pad.opcode != "pad":
        return False
    config = pad.attributes["padding"]
    padded = config.padded
    if any(d not in places for d in padded):
        return False
    results = _whole_dimensions(gather)
    batches = {} if reshape is not None else _batches_padded_alike(gather, config)
    if any(places[d] not in results for d in padded):
        if any(places[d] not in results and d not in batches for d in padded):
            return False
        if len(batches) != len(indices.attributes["padding"].padded):
            return False
        results |= batches
        indices = indices.operands[0]
    source = pad.operands[0]
    small = {places[d]: source.shape.dimensions[d] for d in padded}
    if reshape is not None:
        source = make.derived(gather, "reshape", _resized(reshape.shape, small), [source])
    windows = [
        size if d in batches else small.get(d, size)
        for d, size in enumerate(gather.attributes["slice_sizes"])
    ]
    said = {name: text for name in _NUMBERS if (text := gather.attributes.raw(name)) is not None}
    said["slice_sizes"] = make.numbers(windows)
    shape = _resized(gather.shape, {results[d]: size for d, size in small.items()})
    new = make.derived(gather, "gather", shape, [source, indices], **said)
    around = {results[places[d]]: config[d] for d in padded}
    dimensions = [around.get(d, PaddingDimension(0, 0)) for d in range(gather.shape.rank)]
    text = str(PaddingConfig(tuple(dimensions)))
    return c.replace(gather, make.derived(gather, "pad", gather.shape, [new, pad.operands[1]], padding=text))


def _resized(shape: Shape, sizes: dict[int, int]) -> Shape:
    dimensions = [sizes.get(d, size) for d, size in enumerate(shape.dimensions)]
    return with_layout(shape.element_type, dimensions, shape.minor_to_major)


def _whole_dimensions(gather: Instruction) -> dict[int, int]:
    """Of the operand's dimensions that every slice holds whole: the dimension of the result
    (`GetGatherOperandPassthroughDims`)."""
    said, sizes = gather.attributes, gather.operands[0].shape.dimensions
    left_out = {*said.get("collapsed_slice_dims", ()), *said.get("operand_batching_dims", ())}
    kept = [d for d in range(len(sizes)) if d not in left_out]
    pairs = zip(kept, said["offset_dims"], strict=True)
    return {d: result for d, result in pairs if said["slice_sizes"][d] == sizes[d]}


def _batches_padded_alike(gather: Instruction, config: PaddingConfig) -> dict[int, int]:
    """Of batch dimensions that the indices have padded as the operand has: the dimension of the result
    (`CheckPaddedDimsForGatherOfPad`)."""
    said, indices = gather.attributes, gather.operands[1]
    if indices.opcode != "pad":
        return {}
    offsets: Sequence[int] = said["offset_dims"]
    free = [d for d in range(gather.shape.rank) if d not in offsets]
    of_indices = [d for d in range(indices.shape.rank) if d != said["index_vector_dim"]]
    result_of = dict(zip(of_indices, free, strict=True))
    theirs, mine = said.get("start_indices_batching_dims", ()), said.get("operand_batching_dims", ())
    around = indices.attributes["padding"]
    pairs = zip(mine, theirs, strict=True)
    return {a: result_of[b] for a, b in pairs if a in config.padded and around[b] == config[a]}
