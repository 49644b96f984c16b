"""A compiled program and its dumps."""

import re
from math import prod
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from hlofuse.cost.tpu import tpu_devices, tpu_of
from hlofuse.format import fields, printable
from hlofuse.ir import HlofuseError, Json, Record, Strings

TARGETS = ("cpu", "gpu", "tpu")
Mesh: TypeAlias = tuple[tuple[str | None, int], ...]
"""The axes of a mesh, each with its name or None, and its size."""


class CaptureError(HlofuseError):
    """Nothing was captured; the message says how to proceed."""


class Destination(Record):
    target: str  # One of TARGETS
    device: str | None = None  # The GPU, a name of `hlofuse devices` or a file; only with `gpu`
    topology: str | None = None
    """With `tpu` `v5e:2x2`; with `gpu` slices, hosts of each and GPUs of each host: `1x2x8`."""
    mesh: Mesh = ()  # The mesh over which the program is divided

    def __post_init__(self) -> None:
        if self.target not in TARGETS:
            raise CaptureError(f"no target {self.target!r}; expected one of {', '.join(TARGETS)}")
        if self.target == "gpu" and self.device is None:
            raise CaptureError("target gpu needs a device (hlofuse devices lists them)")
        if self.target != "gpu" and self.device is not None:
            raise CaptureError(f"a device needs target gpu, not {self.target}")
        if self.target == "cpu" and self.topology is not None:
            raise CaptureError("a topology needs target gpu or tpu, not cpu")
        if self.target == "gpu" and self.topology and not re.fullmatch(r"\d+x\d+x\d+", self.topology):
            raise CaptureError(
                f"topology {printable(self.topology)!r} : expected slices x hosts x GPUs, as in 1x1x8"
            )

    @property
    def place(self) -> str | None:
        """The topology; the smallest one of a TPU grows with the mesh."""
        tpu = tpu_devices().get(tpu_of(self.topology or ""))
        if tpu is None or self.topology != tpu.topology:
            return self.topology
        return tpu.topology_of(prod(size for _, size in self.mesh))

    @property
    def text(self) -> str:
        """Text for a headline: `gpu (h100_sxm)`."""
        mesh = "mesh " + ", ".join(f"{name}={size}" if name else str(size) for name, size in self.mesh)
        more = ", ".join(filter(None, [self.device, self.place, mesh if self.mesh else None]))
        return f"{self.target} ({more})" if more else self.target


def settled_destination(
    target: str | None, device: str | None, topology: str | None, mesh: Mesh = ()
) -> Destination:
    """The destination of a call; a TPU's name stands for its smallest topology."""
    tpu = tpu_devices().get(device or "")
    if tpu is not None and target in (None, "tpu"):
        if topology is not None and tpu_of(topology) != tpu.name:
            raise CaptureError(f"--topology {printable(topology)} is not one of --device {tpu.name}")
        return Destination("tpu", None, topology or tpu.topology, mesh)
    target = target or ("gpu" if device is not None else "tpu" if topology is not None else "cpu")
    topology = topology or (tpu_devices()["v5e"].topology if target == "tpu" else None)
    return Destination(target, device, topology, mesh)


class CapturedModule(Record):
    name: str
    folder: Path
    passes: Strings  # The passes that changed the module between before.hlo and after.hlo, in order

    @property
    def before(self) -> Path:
        """The module as it enters the fusion passes."""
        return self.folder / "before.hlo"

    @property
    def after(self) -> Path:
        """The module as it leaves them."""
        return self.folder / "after.hlo"


class Capture(Struct):
    """A compiled program and its dumps."""

    folder: Path
    target: str
    modules: list[CapturedModule] = []
    versions: dict[str, str] = {}
    """Versions of python, jax and jaxlib, as far as the compiling process reported them."""
    flags: str = ""
    """XLA_FLAGS of the compiling process."""
    unknown_fields: list[str] = []
    """Fields of the GPU's description omitted because this XLA does not know them."""
    errors: dict[str, str] = {}
    """Compiler errors by program; after a late one the module is captured all the same."""
    left_out: dict[str, str] = {}
    """Modules without a fusion stage, with the reason."""
    warnings: list[str] = []
    status: int = 0
    """Exit status of the program that was run."""

    @property
    def largest(self) -> CapturedModule:
        """The module with the longest dump, usually the relevant one."""
        return max(self.modules, key=lambda m: m.before.stat().st_size)

    def module(self, name: str | None = None) -> CapturedModule:
        """The module of that name; the only one for None. Raises `CaptureError` otherwise."""
        found = [m for m in self.modules if name in (None, m.name)]
        if len(found) != 1:
            names = ", ".join(m.name for m in self.modules[:12])
            raise CaptureError(f"{len(self.modules)} modules were captured; select one: {names}")
        return found[0]

    def stamp(self, device: str | None, name: str) -> Json:
        """The content of `hlofuse.json` in the folder of a module: the compiler, and its error."""
        flags = [f for f in self.flags.split() if not f.startswith("--xla_dump")]
        return {
            "schema": "hlofuse.stamp/1",
            "jaxlib": self.versions.get("jaxlib"),
            "backend": self.target,
            "device": device and Path(device).name,
            "flags": " ".join(flags),
            "error": self.errors.get(name),
        }

    def manifest(self) -> Json:
        return {
            "schema": "hlofuse.capture/1",
            **fields(self, "target versions flags unknown_fields"),
            "modules": [fields(m, "name passes") for m in self.modules],
            **fields(self, "errors left_out warnings"),
        }
