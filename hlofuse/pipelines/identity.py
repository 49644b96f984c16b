"""Facts about a module, each with its evidence, which `hlofuse.inputs` collects."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from hlofuse.ir.record import Json, Record, Strings
from .targets import TARGETS, Stage

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription

Source = Literal["default", "text", "directory", "stamp", "asked"]
SOURCES: tuple[Source, ...] = get_args(Source)  # The weakest first
_SHOWN = 5


class Fact(Record):
    """One statement, such as the backend of a module."""

    value: str
    source: Source = "default"
    evidence: str = ""  # The evidence in words; for a default, why there is none

    is_open: bool = False  # True if the evidence leaves several values, of which `value` names all


FRONT_ENDS = {"neuron": "Neuron", "poplar": "Poplar"}
"""Backends with their own compiler, which take modules before optimizations from XLA's front ends."""


class Given(Record):
    """The facts that a call states; None and empty for those that the input is to show."""

    target: str | None = None
    stage: Stage | None = None
    flags: Strings = ()
    release: str | None = None
    device: "DeviceDescription | None" = None  # The device to replay, from whatever source


NOTHING_GIVEN = Given()


class ShownStage(Record):
    name: Stage
    backend: str | None = None  # `cpu`, `gpu`, `tpu` or another, where the module has evidence of one
    evidence: str = ""  # The evidence in words
    right_file: Path | None = None  # The dump of the pass's input, if it lies in the same directory
    source: Source = "text"  # The kind of the evidence

    @property
    def is_fused(self) -> bool:
        """The fusion passes have been over the module."""
        return self.name.is_fused

    @property
    def fact(self) -> Fact:
        return Fact(self.name, self.source, self.evidence)

    def foreign_to(self, target: str) -> bool:
        """True for evidence of another backend than that of `target`; a module without one has none."""
        if self.backend is None or (self.backend in FRONT_ENDS and not self.is_fused):
            return False
        return not target.startswith(self.backend)


class Identity(Record):
    """Facts about a module, for the first line of every report."""

    module: str
    shown: ShownStage
    backend: Fact  # `cpu`, `gpu`, `tpu` or another compiler's name
    release: Fact  # The releases that may have written it, such as `0.8 or later`
    replayed: str  # The release whose passes are repeated, such as `0.11.1`
    device: Fact | None = None  # None where the backend fuses alike on every device, or none is known
    front_end: str = ""  # `JAX`, `TensorFlow` and so on; empty if unknown
    partitions: int = 1  # Devices that one program is, or is to be, divided over
    flags: Strings = ()  # XLA flags that change passes, as read from the dump or asked for
    is_replayed: bool = True  # False for a backend whose passes are not public
    notes: Strings = ()  # Notes on the figures: another release, or one of many devices
    file: str | None = None  # The file it was read from; None for standard input
    excerpt: str = ""  # The place of the module in a longer text; empty for a text of its own
    releases: Strings = ()  # The named releases that `release` leaves open, oldest first

    @property
    def stage(self) -> Fact:
        return self.shown.fact

    @property
    def weakest(self) -> tuple[str, Fact]:
        """The least certain statement, by name: defaults, then open spans. Fused modules show their stage."""
        named = [("the backend", self.backend), ("the release", self.release)]
        if not self.shown.is_fused:
            named.append(("the stage", self.stage))
        if self.device is not None:
            named.append(("the device", self.device))
        return min(named, key=lambda pair: (SOURCES.index(pair[1].source), not pair[1].is_open))

    @property
    def differences(self) -> list[str]:
        """The differences between the possible releases: rules, behaviours, passes and knobs."""
        from .differences import differences

        target = self.backend.value
        return sorted(d.name for d in differences(target, self.releases)) if target in TARGETS else []

    @property
    def span_note(self) -> str:
        """The rules and passes that depend on the possible releases; empty for none."""
        if not self.release.is_open:
            return ""
        found = self.differences
        shown = [name for name in found if name.isupper() or "_" not in name][:_SHOWN]
        more = f"… {len(found) - len(shown)} more" if len(found) > len(shown) else ""
        if not shown:  # fields of `Release`, whose names no user knows
            more = f"{len(found)} {'detail' if len(found) == 1 else 'details'} of XLA's passes"
        verb = "differs" if len(found) == 1 else "differ"
        end = f"{verb} within XLA {self.release.value} (--xla)"
        return f"{', '.join(filter(None, (*shown, more)))} {end}" if found else ""

    def to_json(self) -> Json:
        """The fields that begin every JSON report: `module`, `stage`, `xla`, and the evidence of each."""
        facts = {"stage": self.stage, "backend": self.backend, "release": self.release}
        if self.device is not None:
            facts["device"] = self.device
        release = self.release
        found: dict[str, Json] = {k: {"source": f.source, "text": f.evidence} for k, f in facts.items()}
        if release.is_open:
            found["release"] |= {"releases": list(self.releases), "differences": self.differences}
        same = release.source == "default" or release.value == self.replayed
        return {
            "module": self.module,
            "stage": self.stage.value,
            "xla": {
                "release": self.replayed,
                "source": release.source,
                "written_by": None if same else release.value,
                "backend": self.backend.value,
                "device": self.device.value if self.device is not None else None,
                "flags": dict(f.removeprefix("--").partition("=")[::2] for f in self.flags),
            },
            "identified_by": found,
            "front_end": self.front_end or None,
            "partitions": self.partitions,
            "text_note": self.excerpt or None,
        }
