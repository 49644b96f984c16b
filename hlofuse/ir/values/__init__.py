"""Attribute values as small frozen objects; each names the XLA message it stands for.

`str(value)` is the text XLA prints for it.
"""

from hlofuse.ir.values.aliasing import DonorEntry, InputAlias, OutputAlias
from hlofuse.ir.values.convolution import ConvolutionDimensionNumbers
from hlofuse.ir.values.groups import IotaGroups, MeshGroups, ReplicaGroups
from hlofuse.ir.values.mesh import Axis, Mesh
from hlofuse.ir.values.metadata import OpMetadata, ResultAccuracy, Statistics
from hlofuse.ir.values.sharding import DimensionSharding, NamedSharding, TileSharding, TupleSharding
from hlofuse.ir.values.sparsity import SparsityConfig, SparsityDescriptor, TensorSparsity
from hlofuse.ir.values.window import (
    PaddingConfig,
    PaddingDimension,
    SliceRange,
    SliceRanges,
    Window,
    WindowDimension,
)

__all__ = [
    "Axis",
    "ConvolutionDimensionNumbers",
    "DimensionSharding",
    "DonorEntry",
    "InputAlias",
    "IotaGroups",
    "Mesh",
    "MeshGroups",
    "NamedSharding",
    "OpMetadata",
    "OutputAlias",
    "PaddingConfig",
    "PaddingDimension",
    "ReplicaGroups",
    "ResultAccuracy",
    "SliceRange",
    "SliceRanges",
    "SparsityConfig",
    "SparsityDescriptor",
    "Statistics",
    "TensorSparsity",
    "TileSharding",
    "TupleSharding",
    "Window",
    "WindowDimension",
]
