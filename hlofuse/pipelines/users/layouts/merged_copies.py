"""Copies of a value in another layout, one for each use, which CSE made one.

Layout assignment makes a copy for every use. CSE comes along them in the order of the walk and gives the
first what read the others (`xla/service/hlo_cse.cc`). Every run of the normalization ahead of that puts a
bitcast behind the copy that a cuDNN convolution reads, be it reshaped, for a call that stays as it is
(`UpdateLayoutForCudnnConvolution`, `xla/service/gpu/conv_layout_normalization.cc`). Nobody reads it. CSE
makes those one as well, and AlgebraicSimplifier takes away the one that is left.
"""

from __future__ import annotations

from hlofuse.analysis.custom_calls import is_library_convolution
from hlofuse.ir.instruction import Instruction
from hlofuse.pipelines.users.common.holes import without
from hlofuse.pipelines.users.common.visits import Uses


def users_of_merged_copies(copy: Instruction, uses: Uses) -> list[Instruction]:
    """The users of the `copy` that is left; `uses` tells the order in which a walk comes along each use."""
    listed: list[Instruction | int] = []
    bitcasts: list[Instruction | int] = []
    for user in sorted(copy.users, key=lambda user: uses[copy, user]):
        listed.append(user)
        if _is_for_convolution(user):
            bitcasts.append(len(bitcasts))
            listed.append(bitcasts[-1])
    left = without(without(listed, bitcasts[1:]), bitcasts[:1])
    return [user for user in left if isinstance(user, Instruction)]


def _is_for_convolution(user: Instruction) -> bool:
    read_by = user.users if user.opcode == "bitcast" else [user]
    return any(is_library_convolution(v) and _has_features_first(v) for v in read_by)


def _has_features_first(convolution: Instruction) -> bool:
    """Is it laid out as on devices before Ampere? On others CSE made the copies one ahead of softmax fusion,
    between two runs of the normalization."""
    return (convolution.attributes.raw("dim_labels") or "").startswith("bf")
