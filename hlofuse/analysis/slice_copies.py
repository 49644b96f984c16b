"""Fusions that only copy one contiguous piece of an array, which XLA:GPU runs as a memcpy. Mirrors
`gpu/transforms/dynamic_slice_copy.cc`, with `dynamic_slice_fusion.cc`. A lone slice counts as its wrapper."""

from hlofuse.ir.graph import Instruction, Instructions
from hlofuse.ir.grouping import reach
from hlofuse.ir.opcodes import values
from hlofuse.ir.shape import Shape
from .elementwise import without_views

_SLICING = values("slice dynamic-slice dynamic-update-slice")
_OFFSET_OPCODES = values("parameter constant add subtract multiply compare select")


def copied_slice(kernel: Instruction) -> Instruction | None:
    """The slice, if the kernel is one plain slice of a contiguous piece (`AnalyzeStaticSliceCopyFusion`)."""
    root = _root(kernel)
    if root is None or not root.is_slice:
        return None
    source = root.operand
    if kernel.is_fusion and not source.is_parameter:
        return None
    same_order = source.minor_to_major == root.minor_to_major
    return root if same_order and has_byte_strides(source.shape) and is_contiguous_slice(root) else None


def copied_dynamic_slice(kernel: Instruction) -> Instruction | None:
    """The dynamic-slice or dynamic-update-slice, if all the kernel does is move its piece. Only where XLA
    noted the offset as a function of a loop's counter (`AnalyzeDynamicSliceCopyFusion`)."""
    root = _root(kernel)
    if root is None:
        return None
    slicing = without_views(root)
    if not has_constant_offset(slicing):
        return None
    if slicing.opcode == "dynamic-slice":
        copied = root
    elif slicing.opcode == "dynamic-update-slice":
        copied = slicing.second
    else:
        return None
    if not copied.is_array or not _all_compatible(kernel) or not _reads_one_slice(kernel, copied):
        return None
    if slicing.opcode == "dynamic-update-slice" and not _writes_one_slice(kernel, slicing, copied):
        return None
    return slicing


def has_constant_offset(slicing: Instruction) -> bool:
    """XLA noted where the piece lies in each turn of the loop (`dynamic_slice_config`)."""
    return '"dynamic_slice_config"' in (slicing.raw("backend_config") or "")


def is_contiguous_slice(slice_: Instruction) -> bool:
    """True if the slicing instruction reads or writes one contiguous range of memory.
    `IsContiguousStaticSlice`, and `IsContiguousSlice` of `xla/service/gpu/ir_emission_utils.cc`."""
    whole = slice_.operand.shape
    part = slice_.second.shape if slice_.opcode == "dynamic-update-slice" else slice_.shape
    strides = slice_.attributes["slice"].strides if slice_.is_slice else (1,) * whole.rank
    cut = False
    for d in whole.minor_to_major:
        if cut and part.dimensions[d] != 1:
            return False
        if part.dimensions[d] < whole.dimensions[d]:
            if strides[d] != 1 and part.dimensions[d] > 1:
                return False
            cut = True
    return True


def _root(kernel: Instruction) -> Instruction | None:
    if not kernel.is_fusion:
        return kernel
    return None if kernel.fusion_kind == "kCustom" else kernel.fused_root


def has_byte_strides(shape: Shape) -> bool:
    """No element shares its byte with another (`ShapeUtil::ByteStrides`, `xla/shape_util.cc`)."""
    return shape.layout is None or shape.layout.element_size_in_bits % 8 == 0


def _all_compatible(kernel: Instruction) -> bool:
    inside = kernel.fused_computation if kernel.is_fusion else (kernel,)
    for i in inside:
        if i.is_slice:
            if not is_contiguous_slice(i) or not has_byte_strides(i.operand.shape):
                return False
        elif i.opcode in _SLICING and not has_constant_offset(i):
            return False
    return True


def _reads_one_slice(kernel: Instruction, copied: Instruction) -> bool:
    """True if the copied value is a parameter or one slice of one (`ResolveParameter`)."""
    slice_ = without_views(copied)
    source = slice_
    if slice_.opcode == "dynamic-slice":
        if not _has_constant_offsets(kernel, slice_.operands[1:]):
            return False
        source = slice_.operand
    elif slice_.is_slice:
        source = slice_.operand
    source = without_views(source)
    if not _is_input(kernel, source):
        return False
    # Without a slice the whole of the parameter has to be copied.
    return slice_.opcode in ("dynamic-slice", "slice") or copied.byte_size == source.byte_size


def _writes_one_slice(kernel: Instruction, update: Instruction, copied: Instruction) -> bool:
    target = without_views(update.operand)
    if not _is_input(kernel, target) or not _has_constant_offsets(kernel, update.operands[2:]):
        return False
    written = update.second.shape
    return copied.minor_to_major == written.minor_to_major


def _is_input(kernel: Instruction, instruction: Instruction) -> bool:
    return instruction.is_parameter if kernel.is_fusion else instruction is not kernel


def _has_constant_offsets(kernel: Instruction, offsets: Instructions) -> bool:
    """Scalar expressions of parameters and constants (`BuildOffsetExpr`)."""
    if not kernel.is_fusion:
        return True  # its operands become parameters
    nodes = reach(map(without_views, offsets), lambda x: map(without_views, x.operands))
    return all(x.opcode in _OFFSET_OPCODES and not x.rank for x in nodes)
