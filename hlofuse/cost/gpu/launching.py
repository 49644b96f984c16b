"""Launches of instructions and pairs, by structure: which emitter, how many blocks and threads."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.analysis.release import Release
from hlofuse.cost.gpu import backend_config as config
from hlofuse.cost.gpu import llvm_launch
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.heroes import Root, fuse_roots
from hlofuse.cost.gpu.in_place import can_update_in_place
from hlofuse.cost.gpu.launch import Kernel, Launch, launch_of, per_element
from hlofuse.cost.gpu.pair import Pair
from hlofuse.cost.gpu.reduction_groups import reduction_groups
from hlofuse.cost.gpu.shapes import NO_BITS
from hlofuse.cost.gpu.summary import Summary
from hlofuse.ir.instruction import Instruction


class Launcher:
    """Works out a launch once for each structure."""

    def __init__(self, device: DeviceDescription, release: Release) -> None:
        self._device = device
        self._mlir = release.mlir_emitters
        self._launch_of = launch_of if release.mlir_emitters else llvm_launch.launch_of

    def of(self, instruction: Instruction, summary: Summary) -> Launch:
        """The launch of an instruction on its own."""
        known = summary.launch
        if known is None:
            known = None if summary.config is None else self._named_emitter(summary.config, summary)
            if known is None:
                kernel = Kernel(
                    summary.roots,
                    summary.features,
                    summary.minor_of_transpose,
                    summary.input_bits,
                    summary.storage_bits,
                    lambda: self._in_place([instruction]),
                    lambda: self._groups([instruction], summary.roots),
                )
                known = self._launch_of(self._device, kernel)
            summary.launch = known
        return known

    def of_pair(self, producer: Instruction, consumer: Instruction, pair: Pair) -> Launch:
        """The launch of the producer fused into the consumer."""
        known = pair.launch
        if known is None:
            a, b = pair.producer, pair.consumer
            fusion = a.config if b.config is None else b.config
            known = None if fusion is None else self._named_emitter(fusion, b)
            if known is None:
                known = self._launch_of(self._device, self._kernel(producer, consumer, pair))
            pair.launch = known
        return known

    def _kernel(self, producer: Instruction, consumer: Instruction, pair: Pair) -> Kernel:
        a, b = pair.producer, pair.consumer
        slots = pair.slots
        roots = fuse_roots(b.roots, b.clean, slots, a.roots[0])
        remaining = list(b.bits)
        for other in reversed(slots):
            del remaining[other]
        remaining += [bits for k, bits in enumerate(a.bits) if k not in a.skipped] if a.skipped else a.bits
        storage = 8
        if self._device.is_blackwell:  # nobody else asks
            read = [o for k, o in enumerate(b.operands) if k not in slots]
            read += [o for k, o in enumerate(a.operands) if k not in a.skipped]
            storage = max([o.storage_bits for o in read], default=8)
        return Kernel(
            roots,
            a.features | b.features,
            min(a.minor_of_transpose, b.minor_of_transpose),
            min(remaining, default=NO_BITS),
            storage,
            lambda: self._in_place([producer, consumer]),
            lambda: self._groups([producer, consumer], roots),
        )

    def _in_place(self, parts: Sequence[Instruction]) -> bool:
        return can_update_in_place(parts) if self._mlir else can_update_in_place(parts, 1)

    def _groups(self, parts: Sequence[Instruction], roots: Sequence[Root]) -> int:
        return reduction_groups(parts, roots, in_one_walk=not self._mlir)

    def _named_emitter(self, fusion: config.FusionConfig, summary: Summary) -> Launch | None:
        """The launch where the backend config names the emitter."""
        root = summary.roots[0].result
        if fusion.kind == config.CUSTOM:
            return per_element(root, "custom")
        if fusion.is_triton:
            if not fusion.tile_sizes:
                return per_element(root, "triton")
            blocks = 1
            for size, tile in zip(root.dimensions, fusion.tile_sizes[0], strict=False):
                blocks *= -(-size // tile)
            return Launch("triton", blocks, fusion.num_warps * self._device.threads_per_warp)
        return per_element(root, "cudnn") if fusion.kind == config.CUDNN else None
