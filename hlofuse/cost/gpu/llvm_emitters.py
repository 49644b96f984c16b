"""What the emitters that wrote LLVM IR can do, which jaxlib 0.4.35 still uses.

Only what differs from the MLIR emitters (`transposes`, `atoms`) is here; `llvm_launch` has their launch
dimensions. Mirrors `xla/service/gpu/ir_emission_utils.cc` and `gpu_fusible.cc` of that release, as they
are with `xla_gpu_mlir_emitter_level=0`.
"""

from functools import lru_cache

from hlofuse.cost.gpu.transposes import TiledTranspose
from hlofuse.ir.shape import Shape

KEEPS_ROLLED = frozenset({"sine", "cosine", "tan", "power", "atan2"})
"""Besides what `atoms` knows: not vectorised (`MayPreventVectorization`)."""

TILE = 32
"""Elements along each side of a transpose's tile."""
_MIN_DIMENSION = 16
_MIN_DIMENSION_OF_LARGE = 8
_MIN_TOTAL_OF_LARGE = 64 * 128
_PERMUTATIONS = ((1, 0), (0, 2, 1), (2, 1, 0))


@lru_cache(maxsize=4096)
def tiled_transpose(source: Shape, result: Shape, permutation: tuple[int, ...]) -> TiledTranspose | None:
    """Its description, None if another emitter has to do it (`GetDescriptionForTiledTransposeEmitter`)."""
    if permutation not in _PERMUTATIONS:
        return None
    last, source_last = result.dimensions[-1], source.dimensions[-1]
    smaller, product = min(last, source_last), last * source_last
    if smaller < _MIN_DIMENSION and (smaller < _MIN_DIMENSION_OF_LARGE or product < _MIN_TOTAL_OF_LARGE):
        return None
    dimensions = result.dimensions
    if len(dimensions) == 2:
        dimensions, permutation = (1, *dimensions), (0, 2, 1)
    element_bytes = (result.bit_width + 7) // 8
    return TiledTranspose(dimensions, permutation, 0, TILE * (TILE + 1) * element_bytes)
