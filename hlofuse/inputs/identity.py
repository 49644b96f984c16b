"""What an input is: stage, backend, device, release, front end and partitions, each with its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlofuse.format.escape import printable
from hlofuse.format.units import plural
from hlofuse.inputs.backend import FRONT_ENDS, NO_TARGET, backend_of
from hlofuse.inputs.choose_target import ChosenTarget, choose_target, sibling_names
from hlofuse.inputs.evidence import Fact
from hlofuse.inputs.release import REPLAYED, includes_replayed, release_of
from hlofuse.inputs.stage import BEFORE, stage_of
from hlofuse.ir.graph import Module
from hlofuse.pipelines.flags import merged, not_honoured
from hlofuse.pipelines.targets import TARGETS

if TYPE_CHECKING:
    from hlofuse.ir.graph import OrderSource

TARGET_FLAGS = frozenset(flag for target in TARGETS.values() for flag in target.flags)
_STAGES = {
    "before-optimizations": "before optimizations",
    "fusion-input": "input of fusion",
    "after-fusion": "after fusion",
    "scheduled": "after all passes",
}
_ORDERS = {
    "xla": "XLA's ids",
    "replayed": "replayed",
    "estimated": "estimated, ties open",
    "text": "of the text, ties open",
}


@dataclass(frozen=True, slots=True)
class Identity:
    """What a module is taken for. The first line of every report is made of it."""

    module: str
    stage: Fact
    backend: Fact
    """`cpu`, `gpu`, `tpu` or another compiler's name."""
    release: Fact
    """The releases that may have written it, such as `0.8 or later`."""
    replayed: str
    """The release whose passes are repeated, such as `0.11.1`."""
    device: Fact | None = None
    """None where the backend fuses alike on every device, or none is known."""
    front_end: str = ""
    """`JAX`, `TensorFlow` and so on; empty where nothing tells."""
    partitions: int = 1
    """Devices that one program is, or is to be, divided over."""
    flags: tuple[str, ...] = ()
    """XLA flags that change passes, as read from the dump or asked for."""
    contradicted_by: str | None = None
    """What shows another backend than the one asked for, as a clause; None where nothing does."""
    file: str | None = None
    """The file it was read from; None for standard input."""
    excerpt: str = ""
    """Where in a longer text the module was found; empty for a text of its own."""

    @property
    def weakest(self) -> tuple[str, Fact]:
        """The least certain statement, by name: what nothing tells first, then what a span leaves open."""
        named = [("the backend", self.backend), ("the stage", self.stage), ("the release", self.release)]
        if self.device is not None:
            named.append(("the device", self.device))
        return min(named, key=lambda pair: (pair[1].strength, not pair[1].is_open))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of figures has to know: the release differs, or one of many devices is shown."""
        found = []
        replayed = self.backend.value not in NO_TARGET
        if replayed and self.release.source != "default" and not includes_replayed(self.release):
            found.append(
                f"XLA {self.release.evidence} wrote this; the passes repeated are those of {self.replayed}"
            )
        if self.contradicted_by is not None:
            found.append(
                f"{self.contradicted_by}, and is replayed as a module for {self.backend.value.upper()}"
            )
        unknown = [f for f in not_honoured(self.flags) if f not in TARGET_FLAGS]
        if unknown:
            found.append(f"the replay does not follow {', '.join(map(printable, unknown))}")
        if self.partitions > 1:
            whole = self.stage.value == BEFORE
            found.append(
                f"the program is for {self.partitions} devices"
                + (
                    ": figures are for all of them together, as the module is not partitioned yet"
                    if whole
                    else ": figures are for one of them"
                )
            )
        return tuple(found)

    def line(self, order: OrderSource | None = None, follows_log: bool = False, *, name: bool = True) -> str:
        """`jit_f: input of fusion · gpu h100_sxm · XLA 0.11.1 · order replayed. Least certain: …`."""
        backend = self.backend.value + (f" {self.device.value}" if self.device is not None else "")
        parts = [_STAGES[self.stage.value], printable(backend)]
        parts.append("passes not public" if self.backend.value in NO_TARGET else f"XLA {self.replayed}")
        if self.front_end:
            parts.append(f"from {self.front_end}")
        if self.partitions > 1:
            parts.append(plural(self.partitions, "partition"))
        if order is not None:
            shown = _ORDERS[order]
            parts.append(
                f"order {shown.partition(',')[0]}, ties as in XLA's log" if follows_log else f"order {shown}"
            )
        parts += [printable(f.removeprefix("--").replace("LIBRARY_FUSION_TYPE_", "")) for f in self.flags]
        line = " · ".join(parts)
        if name:
            line = f"{printable(self.module)}: {line}"
        if self.excerpt:
            line += f" ({self.excerpt})"
        what, weakest = self.weakest
        return f"{line}. Least certain: {what}, {weakest.evidence}"

    def to_json(self) -> dict[str, Any]:
        """The fields that begin every JSON report: `module`, `stage`, `xla`, and the evidence of each."""
        facts = {"stage": self.stage, "backend": self.backend, "release": self.release}
        if self.device is not None:
            facts["device"] = self.device
        release = self.release
        same = release.source == "default" or release.value == REPLAYED
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
            "identified_by": {k: {"source": f.source, "text": f.evidence} for k, f in facts.items()},
            "front_end": self.front_end or None,
            "partitions": self.partitions,
            "text_note": self.excerpt or None,
        }


# ------------------------------------------------------------ front ends

_OP_NAMES = (("jit(", "JAX"), ("pmap(", "JAX"), ("pjit", "JAX"))
_OP_TYPES = (("aten__", "PyTorch/XLA"), ("xla__", "PyTorch/XLA"), ("prim__", "PyTorch/XLA"))
_SOURCES = (("torch_xla", "PyTorch/XLA"), ("tensorflow", "TensorFlow"), ("Reactant", "Reactant"))


def front_end_of(module: Module, backend: Fact | None) -> str:
    """Who wrote the program, by the names in its metadata; empty where nothing tells."""
    if backend is not None and backend.value in FRONT_ENDS:
        return FRONT_ENDS[backend.value]
    for i in module.instructions():
        metadata = i.attributes.get("metadata")
        if metadata is None:
            continue
        op_name, op_type, source = (
            metadata.op_name or "",
            metadata.op_type or "",
            metadata.source_file or "",
        )
        for value, table in ((op_name, _OP_NAMES), (op_type, _OP_TYPES)):
            for start, name in table:
                if value.startswith(start):
                    return name
        for part, name in _SOURCES:
            if part in source:
                return name
        if op_type and op_type[:1].isupper():
            return "TensorFlow"
    return ""


def partitions_of(module: Module) -> int:
    """`num_partitions` of the header, else 1."""
    text = module.attributes.raw("num_partitions") or "1"
    return int(text) if text.isascii() and text.isdigit() else 1


def _contradicted_by(module: Module, backend: Fact) -> str | None:
    found = backend_of(module) if backend.source == "asked" else None
    if found is None or found.value == backend.value:
        return None
    return f"the module is for {found.value.upper()} ({found.evidence})"


def identify_file(module: Module) -> Identity:
    """What a module that was read from a file is taken for, with nothing but the file to go by."""
    return identify(module, choose_target(module.filename or "-", read=module))


def identify(
    module: Module, chosen: ChosenTarget, device: Fact | None = None, flags: tuple[str, ...] = ()
) -> Identity:
    """What a module is taken for on the target that was chosen for it, with these XLA flags."""
    backend = chosen.backend(
        module, requested=chosen.source == "asked" and chosen.evidence.startswith("--target")
    )
    path = Path(module.filename) if module.filename and module.filename != "<stdin>" else None
    files = sibling_names(path, None) if path is not None else ()
    return Identity(
        module.name,
        stage_of(module, chosen.name).fact,
        backend,
        release_of(module, files),
        TARGETS[chosen.name].release.removeprefix("jaxlib "),
        device,
        front_end_of(module, backend_of(module)),
        partitions_of(module),
        merged(TARGETS[chosen.name].flags, flags),
        _contradicted_by(module, backend),
        str(path) if path is not None else None,
        module.text_note or "",
    )
