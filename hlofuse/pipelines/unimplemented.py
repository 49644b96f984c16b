"""What XLA's passes that are not implemented work on, where an opcode alone does not say it."""

from collections.abc import Callable

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.ir.graph import Instruction

QR = ("Qr", "ProductOfElementaryHouseholderReflectors")
SLICES = ("dynamic-slice", "dynamic-update-slice")


def calls(*targets: str) -> Callable[[Instruction], bool]:
    """Custom calls of these targets."""
    return lambda x: custom_call_target(x) in targets


def has_index_vector(x: Instruction) -> bool:
    """True for a slice whose start is one array."""
    return x.operands[-1].shape.rank == 1


def has_groups(x: Instruction) -> bool:
    """True for a convolution of groups that XLA:CPU takes apart."""
    if x.attributes.raw("batch_group_count") not in (None, "1"):
        return True
    return x.attributes.raw("feature_group_count") not in (None, "1") and x.shape.element_type not in (
        "f16",
        "f32",
    )


def has_mixed_operands(x: Instruction) -> bool:
    """True for a product of operands of two types."""
    return len({o.shape.element_type for o in x.operands}) > 1
