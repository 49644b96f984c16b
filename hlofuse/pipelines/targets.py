"""The targets as data: what each compiles, as one list of passes from the front end to the kernels that run.
The fusion passes are a span of that list. They are text, because a user may change them and a replay adds
the device and XLA's release to each. The passes before and after them are imported when a run needs them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import field

from hlofuse.ir import HlofuseError, Json, Record, Strings, replace
from hlofuse.releases import ANY, AROUND_FUSION, REFERENCE, Release, Span, release_of

if TYPE_CHECKING:
    from hlofuse.cost.gpu.device import DeviceDescription
    from hlofuse.passes.base import Pass, Pipeline


class OptionalPass(Record):
    """Passes that a what-if run can add to a target's (`--enable NAME`)."""

    name: str
    title: str
    passes: Strings
    families: Strings = ()  # Letters of the rules they ask, where the target's own passes ask none of them


class Step(Record):
    """A pass of a list, with the releases that run it."""

    text: str  # As `hlofuse.passes` makes it: XLA's name as in its dump files, with options
    span: Span = ANY

    @property
    def name(self) -> str:
        """Without options."""
        return self.text.partition("(")[0]


def _steps(*steps: str | Step) -> tuple[Step, ...]:
    return tuple(step if isinstance(step, Step) else Step(step) for step in steps)


class Target(Record):
    name: str
    title: str
    steps: tuple[Step, ...]
    fidelity: str
    options: dict[str, tuple[Step, ...]]  # Named variants: XLA option to the pass list it gives
    default_options: dict[str, Span] = field(default_factory=dict)  # Releases with an option on by default
    release: str = ""  # The only release it is for; empty for a backend, which every release has
    backend: str = "gpu"  # XLA's backend, `cpu` or `gpu`
    flags: Strings = ()  # XLA flags that make the backend of that release run these passes; none by default
    needs_device: bool = False  # Its decisions rest on a device's numbers (`hlofuse devices`)
    has_history: bool = False  # They also rest on what earlier passes left: ids, users' order, spent names
    restores_use_lists: bool = False  # The order of users is that of earlier passes (`hlofuse.order.legacy`)
    optional_passes: tuple[OptionalPass, ...] = ()  # Further passes that XLA has, or once had
    front: str | None = None
    """`module:function` that gives the passes before fusion for a device; None where they are not known."""
    back: str | None = None  # The same for the passes after fusion, up to what is launched

    def has_by_default(self, option: str, release: Release) -> bool:
        """True if that release has the option on unless a flag says otherwise."""
        return option in self.default_options and release.has(self.default_options[option], option)

    def listed(self, option: str | None = None) -> tuple[Step, ...]:
        """The passes of all releases, or those of a variant; HlofuseError for a name that is none."""
        if option is None:
            return self.steps
        if option not in self.options:
            names = ", ".join(self.options) or "none"
            raise HlofuseError(f"target {self.name} has no option {option!r}; expected one of {names}")
        return self.options[option]

    @property
    def depends_on_order(self) -> bool:
        """True if decisions rest on ids or use-lists, which no text carries."""
        return self.has_history or self.restores_use_lists


def _gpu_steps(priority_fusion: str = "priority-fusion") -> tuple[Step, ...]:
    return _steps(
        "variadic-op-splitter",
        Step("sort-iota-fusion", Span("0.9")),
        priority_fusion,
        "cse",
        "dce",
        "multi_output_fusion",
        "cse",
        "dce",
    )


TARGETS: dict[str, Target] = {
    "cpu": Target(
        "cpu",
        "XLA:CPU",
        _steps("fusion", Step("fusion-wrapper", Span("0.5"))),
        "exact after every pass in 63 of 63 corpus and 2,953 of 2,953 random modules; with multi-output, same"
        " kernels in 1,620 of 1,621 modules",
        {
            "multi-output": _steps(
                Step("fusion", Span(until="0.6")),
                Step("fusion(may_duplicate=false)", Span("0.7")),
                Step("fusion-wrapper", Span("0.5", "0.6")),
                Step("fusion-wrapper", Span("0.8")),
                Step("cpu_multi_output_fusion", Span("0.7")),
                Step("tuple-simplifier", Span("0.7")),
                Step("fusion-wrapper", Span("0.7", "0.7")),
            )
        },
        backend="cpu",
        optional_passes=(
            OptionalPass(
                "multi-output",
                "CpuMultiOutputFusion, behind a flag in XLA",
                ("cpu_multi_output_fusion", "tuple-simplifier"),
                ("MO", "TS"),
            ),
        ),
        front="hlofuse.pipelines.cpu:before_fusion",
        back="hlofuse.pipelines.cpu:after_fusion",
    ),
    "gpu": Target(
        "gpu",
        "XLA:GPU, priority fusion",
        _gpu_steps(),
        "same final kernels in 252 of 252 corpus modules on four devices; with XLA's ids every decision in"
        " 250 of them, with XLA's fusion log in all",
        {"triton-multi-output": _gpu_steps("priority-fusion(triton_multi_output=true)")},
        {"triton-multi-output": Span("0.6", "0.9")},
        needs_device=True,
        has_history=True,
        optional_passes=(
            OptionalPass(
                "horizontal",
                "HorizontalLoopFusion and HorizontalInputFusion, in XLA until 0.4.35",
                ("horizontal_loop_fusion", "horizontal_input_fusion", "cse", "dce"),
                ("HF",),
            ),
        ),
        front="hlofuse.pipelines.gpu.before_fusion:before_fusion",
        back="hlofuse.pipelines.gpu.after_fusion:after_fusion",
    ),
    "gpu-legacy": Target(
        "gpu-legacy",
        "XLA:GPU, the four strategies before priority fusion",
        _steps(
            *"""variadic-op-splitter fusion(may_duplicate=false) fusion fusion_merger cse dce
            multi_output_fusion cse dce horizontal_loop_fusion horizontal_input_fusion cse dce""".split()
        ),
        "exact after every pass in 124 of 124 corpus modules on two devices; same kernels in 1,157 of 1,157"
        " random modules, same result order in 1,153",
        {},
        release="0.4.35",
        flags=("--xla_gpu_enable_priority_fusion=false",),
        needs_device=True,
        restores_use_lists=True,
    ),
}
OPTION_FLAGS = {"triton-multi-output": "--xla_gpu_unsupported_enable_triton_multi_output_fusion=true"}
"""The XLA flag of an option (`Target.options`), where XLA has one."""


def passes_of(target: str, release: Release, option: str | None = None) -> Strings:
    if target not in TARGETS:
        raise HlofuseError(f"no target {target!r}; expected one of {', '.join(TARGETS)}")
    return tuple(s.text for s in TARGETS[target].listed(option) if release.has(s.span, s.text))


def target_by_flags(target: str, release: str, flags: Strings) -> str:
    """The target whose passes flags choose within a backend and a release; else the target itself."""
    for name, other in TARGETS.items():
        chosen = (other.backend, other.release) == (TARGETS[target].backend, release)
        if chosen and set(other.flags) <= set(flags):
            return name
    return target


def pass_names_of(target: str) -> Strings:
    """The names of all passes that some release or variant of a target runs, in order and without options."""
    target_data = TARGETS[target]
    runs = [target_data.steps, *target_data.options.values()]
    return tuple(dict.fromkeys(step.name for steps in runs for step in steps))


def before_fusion(
    target: str,
    device: DeviceDescription | None = None,
    flags: Strings = (),
    release: Release = AROUND_FUSION,
) -> tuple[Pipeline, ...]:
    """The passes of `target` before its fusion passes; empty where unknown for it or the device."""
    return _passes(TARGETS[target].front if target in TARGETS else None, device, flags, release)


def after_fusion(
    target: str,
    device: DeviceDescription | None = None,
    flags: Strings = (),
    release: Release = AROUND_FUSION,
) -> tuple[Pipeline, ...]:
    """The passes of `target` after its fusion passes, up to the final module; empty where unknown."""
    return _passes(TARGETS[target].back if target in TARGETS else None, device, flags, release)


def _passes(
    where: str | None, device: DeviceDescription | None, flags: Strings, release: Release
) -> tuple[Pipeline, ...]:
    if where is None:
        return ()
    module, _, name = where.partition(":")
    created: Callable[[DeviceDescription | None, Strings, Release], tuple[Pipeline, ...]]
    created = getattr(importlib.import_module(module), name)
    return created(device, flags, release)


def compilation(target: str, device: DeviceDescription | None = None) -> tuple[Pass, ...]:
    """XLA's passes from the front end to the kernels that run."""
    from hlofuse.passes.base import Pipeline
    from hlofuse.passes.registry import make_pass

    release = release_of(TARGETS[target].release or REFERENCE)
    passes = passes_of(target, release)
    fusion = Pipeline("fusion", [make_pass(p, target, release, device=device) for p in passes])
    return (*before_fusion(target, device), fusion, *after_fusion(target, device))


class Stage(StrEnum):
    """A place in the list of passes from the front end to what is launched, in order."""

    BEFORE = "before-optimizations"  # Anywhere before the fusion passes
    INPUT = "fusion-input"
    FUSED = "after-fusion"
    SCHEDULED = "scheduled"

    @property
    def is_fused(self) -> bool:
        """True if the fusion passes have run."""
        return self in (Stage.FUSED, Stage.SCHEDULED)


NEEDS_DEVICE = "needs --device, the GPU to replay, such as --device h100_sxm (hlofuse devices lists all)"
"""The message where a target needs a device and none is known."""
NEEDS_AMD_DEVICE = (
    "needs --device, the AMD GPU to replay, such as --device mi300x (hlofuse devices lists all)"
)
"""The message where the module was written for ROCm."""


def device_of(
    target: str, device: str | DeviceDescription | None, overrides: Iterable[str] = ()
) -> tuple[DeviceDescription | None, Strings]:
    """The device (a name or file), with the overrides `NAME=VALUE` that mean its numbers, and the others.
    None for targets whose decisions do not depend on a device; naming one is an error then."""
    overrides = tuple(overrides)
    if not TARGETS[target].needs_device:
        if device is not None:
            others = " or ".join(name for name, t in TARGETS.items() if t.needs_device)
            raise HlofuseError(
                f"target {target} fuses the same on every device; --device needs --target {others}"
            )
        return None, overrides
    from hlofuse.cost.gpu.device import DeviceDescription, load_device

    if device is None:
        raise HlofuseError(f"target {target} {NEEDS_DEVICE}")
    numbers = {f.name for f in fields(DeviceDescription)}
    device_overrides = [o for o in overrides if o.partition("=")[0] in numbers]
    if bare := [o for o in device_overrides if "=" not in o]:
        raise HlofuseError(f"--set {bare[0]}: expected NAME=VALUE")
    if isinstance(device, str):  # reports call a device as the user does
        device = replace(load_device(device), name=Path(device).stem)
    if device_overrides:
        device = device.with_overrides(dict(o.split("=", 1) for o in device_overrides))
    return device, tuple(o for o in overrides if o not in device_overrides)


class XlaBuild(Record):
    """The four values that decide XLA's treatment of a module."""

    release: str  # As jaxlib counts releases, such as `0.11.1`
    backend: str  # `cpu` or `gpu`
    device: DeviceDescription | None = None  # None for a backend that fuses the same on every device
    flags: Strings = ()  # XLA flags that change fusion, as `XLA_FLAGS` takes them, without defaults

    def to_json(self) -> Json:
        """`release`, `backend`, `device` (its name or null) and `flags` (name to value)."""
        flags = dict(f.removeprefix("--").partition("=")[::2] for f in self.flags)
        device = self.device.name if self.device is not None else None
        return {"release": self.release, "backend": self.backend, "device": device, "flags": flags}
