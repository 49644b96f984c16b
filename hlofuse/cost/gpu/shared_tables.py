"""What models have worked out of structures, kept for the replays of a module that meet them again."""

from typing import TYPE_CHECKING

from hlofuse.cost.gpu.atoms import AtomTable
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.launching import Launcher
from hlofuse.cost.gpu.shapes import ShapeTable
from hlofuse.cost.gpu.summary import PairTable
from hlofuse.cost.gpu.summary_table import SummaryTable
from hlofuse.releases import Release

if TYPE_CHECKING:
    from hlofuse.cost.tiling.model import TilingModel


class Tables:
    """Those of one model on one device. No figure in them depends on names, or on what is around."""

    def __init__(self, device: DeviceDescription, release: Release) -> None:
        shapes = ShapeTable()
        self.atoms = AtomTable(device, shapes, release)
        self.summaries = SummaryTable(shapes, self.atoms)
        self.pairs = PairTable()
        self.launcher = Launcher(device, release)
        self.tiling: TilingModel | None = None
        """Where one has been made."""

    def forget_module(self) -> None:
        """Let go of a module that is done with; what is known about structures stays."""
        self.atoms.forget_regions()
        if self.tiling is not None:
            self.tiling.forget_module()


class SharedTables:
    """Tables by model, device and release, as long as somebody holds on to them."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, DeviceDescription, Release], Tables] = {}

    def of(self, model: str, device: DeviceDescription, release: Release) -> Tables:
        """The tables for a model that is about to be used on another copy of the module."""
        key = (model, device, release)
        tables = self._tables.get(key)
        if tables is None:
            tables = self._tables[key] = Tables(device, release)
        else:
            tables.forget_module()
        return tables
