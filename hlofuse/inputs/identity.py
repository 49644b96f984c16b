"""Facts about an input: stage, backend, device, release, front end and partitions, each with its evidence."""

import re
from typing import TYPE_CHECKING

from hlofuse.analysis.async_ops import wrapped_opcode
from hlofuse.analysis.custom_calls import is_divided, partitions_of
from hlofuse.format import listing, printable
from hlofuse.ir import Module, Strings, replace, with_trait
from hlofuse.passes.registry import places_of
from hlofuse.pipelines.flags import DISABLED, merged, not_modelled, value_of
from hlofuse.pipelines.identity import FRONT_ENDS, NOTHING_GIVEN, Fact, Given, Identity
from hlofuse.pipelines.targets import TARGETS, Stage, after_fusion, before_fusion, target_by_flags
from hlofuse.releases import release_of
from .backend import backend_of, platform_of
from .choose_target import NO_TARGET, ChosenTarget, choose_target
from .companions import companions_of, compiled_with
from .release import replayed_release, written_by
from .stage import stage_of

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription

_FLAGS = 3  # named in a note
_FRONT_ENDS = (
    ("op_name", r"jit\(|pmap\(|pjit", "JAX"),
    ("op_type", "aten__|xla__|prim__", "PyTorch/XLA"),
    ("source_file", "(?s:.*)torch_xla", "PyTorch/XLA"),
    ("source_file", "(?s:.*)tensorflow", "TensorFlow"),
    ("source_file", "(?s:.*)Reactant", "Reactant"),
    ("op_type", "[A-Z]", "TensorFlow"),
)
"""Fields of an instruction's metadata, what they begin with, and the front end that writes this."""


def front_end_of(module: Module, backend: Fact | None) -> str:
    """The front end, by the names in its metadata; empty without evidence."""
    if backend is not None and backend.value in FRONT_ENDS:
        return FRONT_ENDS[backend.value]
    for i in module.instructions():
        metadata = i.attributes.get("metadata")
        for field, begins, name in _FRONT_ENDS if metadata is not None else ():
            if re.match(begins, getattr(metadata, field) or ""):
                return name
    return ""


def _contradicted_by(module: Module, backend: Fact) -> str | None:
    found = backend_of(module) if backend.source == "asked" else None
    if found is None or found.value == backend.value:
        return None
    return f"the module is for {found.value.upper()} ({found.evidence})"


_EXCHANGES = with_trait("collective") | with_trait("collective-start") | {"send", "recv"}
_VENDORS = {"CUDA": "NVIDIA", "ROCM": "AMD"}


def _notes(
    module: Module,
    stage: Fact,
    backend: Fact,
    note: str,
    unfollowed: Strings,
    device: "DeviceDescription | None",
) -> Strings:
    found = [note] if note and backend.value not in NO_TARGET else []
    stamp = companions_of(module).stamp
    if stamp is not None and stamp.error:
        found.append(f"XLA did not finish: {printable(stamp.error)}")
    needed = platform_of(module) if device is not None else None
    if device is not None and needed is not None and needed.value != device.platform:
        found.append(
            f"the module {needed.evidence}, which only {_VENDORS[needed.value]}'s GPUs have; {device.name} is"
            " none, though its rules and figures are shown"
        )
    if device is not None and device.platform != "CUDA" and stage.value != Stage.SCHEDULED:
        found.append(
            f"XLA's passes before and after fusion are replayed for NVIDIA's GPUs; on {device.name} only the"
            " fusion passes are"
        )
    contradiction = _contradicted_by(module, backend)
    if contradiction is not None:
        found.append(f"{contradiction}, but is replayed for {backend.value.upper()}")
    if module.unknown is not None:
        found.append(module.unknown.note)
    if unfollowed:
        found.append(f"Flags whose effect is not modelled: {listing([*map(printable, unfollowed)], _FLAGS)}")
    partitions = partitions_of(module)
    if partitions > 1 and (stage.value != Stage.BEFORE or not is_divided(module)):
        opcodes = {name for x in module.instructions() for name in (x.opcode, wrapped_opcode(x.opcode))}
        alone = "" if opcodes & _EXCHANGES or is_divided(module) else "; it has no collectives"
        found.append(f"figures are for one of {partitions} devices{alone}")
    return tuple(found)


def identify_file(module: Module) -> Identity:
    """The identity of a module read from a file."""
    return settled(module, choose_target(companions_of(module), read=module))[1]


def settled(
    module: Module, chosen: ChosenTarget, device: Fact | None = None, given: Given = NOTHING_GIVEN
) -> tuple[ChosenTarget, Identity]:
    """The target that the flags of a module choose, and what the module is taken for."""
    identity = identify(module, chosen, device, given)
    by_flags = target_by_flags(chosen.name, identity.replayed, compiled_with(module, given.flags))
    if by_flags == chosen.name:
        return chosen, identity
    chosen = replace(chosen, name=by_flags)
    return chosen, identify(module, chosen, device, given)


def identify(
    module: Module,
    chosen: ChosenTarget,
    device: Fact | None = None,
    given: Given = NOTHING_GIVEN,
) -> Identity:
    """The facts about a module on the target that was chosen for it; HlofuseError for a wrong release."""
    flags, backend = compiled_with(module, given.flags), chosen.backend(module)
    companions = companions_of(module)
    path = companions.path
    shown = stage_of(module, chosen.name, given)
    target = TARGETS[chosen.name]
    folder = path.parent if path is not None else None
    written = written_by(module, companions.names, companions.stamp, target.backend, folder)
    release, replayed, note = replayed_release(target.release, given.release, written)
    stated = merged(companions.all_flags or (), given.flags)
    is_lowered = shown.name is not Stage.BEFORE
    unfollowed = not_modelled(
        (f for f in stated if f not in target.flags), target.backend, is_lowered=is_lowered
    )
    if left_out := value_of(stated, DISABLED):
        passes, found = {"", *places_of(chosen.name)}, release_of(replayed)
        for lists in (before_fusion, after_fusion):
            passes |= {p.name for top in lists(chosen.name, given.device, (), found) for p in top.flattened()}
        if unknown := sorted({*left_out.split(",")} - passes):
            unfollowed += (f"--{DISABLED}={','.join(unknown)}",)
    return Identity(
        module.name,
        shown,
        backend,
        release,
        replayed,
        device,
        front_end_of(module, backend_of(module)),
        partitions_of(module),
        merged(target.flags, flags),
        backend.value not in NO_TARGET,
        _notes(module, shown.fact, backend, note, unfollowed, given.device),
        str(path) if path is not None else None,
        module.text_note or "",
        (replayed,) if release.source == "asked" else written.releases,
    )
