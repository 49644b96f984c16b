"""Results by structure that repeated replays of a module share: launches, and tables of other modules."""

from typing import TYPE_CHECKING

from hlofuse.cost.gpu import backend_config as config
from hlofuse.ir.graph import Instruction
from hlofuse.releases import Release
from .atoms import AtomTable
from .device import DeviceDescription
from .launch import FusionAnalysis, Launch, elementwise_launch, launch_of
from .shapes import ShapeTable
from .summary import PairTable, Summary, SummaryPair
from .summary_table import SummaryTable

if TYPE_CHECKING:
    from hlofuse.cost.tiling.model import TilingModel


class Launcher:
    def __init__(self, device: DeviceDescription, release: Release) -> None:
        self._device = device
        self._release = release

    def launch(self, instruction: Instruction, summary: Summary) -> Launch:
        cached = summary.launch
        if cached is None:
            cached = None if summary.config is None else self._named_emitter(summary.config, summary)
            if cached is None:
                cached = launch_of(self.kernel(instruction, summary))
            summary.launch = cached
        return cached

    def kernel(self, instruction: Instruction, summary: Summary) -> FusionAnalysis:
        """The facts that decide the launch of a single instruction."""
        return FusionAnalysis(self._device, self._release, (instruction,), summary)

    def pair_launch(
        self,
        producer: Instruction,
        consumer: Instruction,
        pair: SummaryPair,
    ) -> Launch:
        cached = pair.launch
        if cached is None:
            a = pair.producer
            b = pair.consumer
            fusion = a.config if b.config is None else b.config
            if fusion is not None:
                cached = self._named_emitter(fusion, b)
            if cached is None:
                parts = producer, consumer
                cached = launch_of(FusionAnalysis(self._device, self._release, parts, pair))
            pair.launch = cached
        return cached

    def _named_emitter(self, fusion: config.FusionConfig, summary: Summary) -> Launch | None:
        root = summary.roots[0].result
        if fusion.kind == config.CUSTOM:
            return elementwise_launch(root, "custom")
        if fusion.is_triton:
            if not fusion.tile_sizes:
                return elementwise_launch(root, "triton")
            blocks = 1
            for size, tile in zip(root.dimensions, fusion.tile_sizes[0], strict=False):
                blocks *= -(-size // tile)
            return Launch("triton", blocks, fusion.num_warps * self._device.threads_per_warp)
        return elementwise_launch(root, "cudnn") if fusion.kind == config.CUDNN else None


class Tables:
    """Tables of one model on one device; no figure depends on names or neighbours."""

    def __init__(self, device: DeviceDescription, release: Release) -> None:
        shapes = ShapeTable()
        self.atoms = AtomTable(device, shapes, release)
        self.summaries = SummaryTable(shapes, self.atoms)
        self.pairs = PairTable()
        self.launcher = Launcher(device, release)
        self.tiling: TilingModel | None = None  # The tiled model, if one was made

    def forget_module(self) -> None:
        """Drop a finished module; figures of structures stay."""
        self.atoms.forget_regions()
        self.summaries.forget_module()
        if self.tiling is not None:
            self.tiling.forget_module()


class SharedTables:
    """Tables by model, device and release."""

    def __init__(self) -> None:
        self._tables = dict[tuple[str, DeviceDescription, Release], Tables]()

    def tables(self, model: str, device: DeviceDescription, release: Release) -> Tables:
        key = (model, device, release)
        tables = self._tables.get(key)
        if tables is None:
            tables = self._tables[key] = Tables(device, release)
        else:
            tables.forget_module()
        return tables
