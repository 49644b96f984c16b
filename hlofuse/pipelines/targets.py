"""The targets as data: what each compiles, as one list of passes from the front end to the kernels that run.

The fusion passes are a span of that list. They are text, because a user may change them and a replay adds to
each what the run is about; the passes before and after them are imported when a run needs them.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlofuse.ir.errors import HlofuseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hlofuse.cost.gpu.device import DeviceDescription
    from hlofuse.passes.base import Pass, Pipeline


@dataclass(frozen=True, slots=True)
class OptionalPass:
    """Passes that a what-if run can add to a target's (`--enable NAME`)."""

    name: str
    title: str
    passes: tuple[str, ...]
    families: tuple[str, ...] = ()
    """The letters of the rules they ask, where the target's own passes ask none of them."""


@dataclass(frozen=True, slots=True)
class Target:
    """A backend of one XLA release and its fusion passes in order.

    `passes` are names that `hlofuse.passes` can make (XLA's names as in its dump files).
    """

    name: str
    title: str
    release: str
    passes: tuple[str, ...]
    fidelity: str
    """How faithfully the replay repeats XLA, as measured."""
    options: dict[str, tuple[str, ...]]
    """Named variants: XLA option to the pass list it gives."""
    backend: str = "gpu"
    """XLA's backend, `cpu` or `gpu`."""
    flags: tuple[str, ...] = ()
    """The XLA flags that make the backend of that release run these passes; none for its defaults."""
    needs_device: bool = False
    """Its decisions rest on a device's numbers (`hlofuse devices`)."""
    has_history: bool = False
    """They also rest on what earlier passes left in memory: ids, users' order, spent names."""
    restores_use_lists: bool = False
    """The order of users is that which earlier passes leave (`hlofuse.order.legacy`)."""
    optional_passes: tuple[OptionalPass, ...] = ()
    """What XLA has, or once had, beyond these passes."""
    front: str | None = None
    """`module:function` that gives the passes before fusion for a device; None where they are not known."""
    back: str | None = None
    """The same for the passes after fusion, up to what is launched."""

    @property
    def depends_on_order(self) -> bool:
        """True if decisions rest on ids or use-lists, which no text carries."""
        return self.has_history or self.restores_use_lists


def _gpu_passes(priority_fusion: str = "priority-fusion") -> tuple[str, ...]:
    first = ("variadic-op-splitter", "sort-iota-fusion", priority_fusion)
    return (*first, "cse", "dce", "multi_output_fusion", "cse", "dce")


TARGETS: dict[str, Target] = {
    "cpu": Target(
        "cpu",
        "XLA:CPU",
        "jaxlib 0.11.1",
        ("fusion", "fusion-wrapper"),
        "exact after every pass in 63 of 63 corpus modules and 2,953 of 2,953 random ones; "
        "with multi-output the kernels of 1,620 of 1,621 modules (docs/fidelity.md)",
        {
            "multi-output": (
                "fusion(may_duplicate=false)",
                "fusion-wrapper",
                "cpu_multi_output_fusion",
                "tuple-simplifier",
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
        "jaxlib 0.11.1",
        _gpu_passes(),
        "the final kernels of 252 of 252 corpus modules on four devices; with ids every step of 250 of them, "
        "of all where ties are settled by XLA's record (docs/fidelity.md)",
        {"triton-multi-output": _gpu_passes("priority-fusion(triton_multi_output=true)")},
        needs_device=True,
        has_history=True,
        optional_passes=(
            OptionalPass(
                "horizontal",
                "HorizontalLoopFusion and HorizontalInputFusion, which XLA had until 0.4.35",
                ("horizontal_loop_fusion", "horizontal_input_fusion", "cse", "dce"),
                ("HF",),
            ),
        ),
        front="hlofuse.pipelines.gpu.pipelines:before_fusion",
        back="hlofuse.pipelines.gpu.after_fusion:after_fusion",
    ),
    "gpu-legacy": Target(
        "gpu-legacy",
        "XLA:GPU, the four strategies before priority fusion",
        "jaxlib 0.4.35",
        (
            "variadic-op-splitter",
            "fusion(may_duplicate=false)",
            "fusion",
            "fusion_merger",
            "cse",
            "dce",
            "multi_output_fusion",
            "cse",
            "dce",
            "horizontal_loop_fusion",
            "horizontal_input_fusion",
            "cse",
            "dce",
        ),
        "every pass of 124 of 124 corpus modules on two devices, the kernels of 1,157 of 1,157 random ones "
        "and the order of their results in 1,153 (docs/fidelity.md)",
        {},
        flags=("--xla_gpu_enable_priority_fusion=false",),
        needs_device=True,
        restores_use_lists=True,
    ),
}

OPTION_FLAGS = {"triton-multi-output": "--xla_gpu_unsupported_enable_triton_multi_output_fusion=true"}
"""The XLA flag of an option (`Target.options`), where XLA has one."""


def passes_of(target: str, option: str | None = None) -> tuple[str, ...]:
    """The pass list of a target or of one of its variants."""
    if target not in TARGETS:
        raise HlofuseError(f"there is no target {target!r}; known: {', '.join(TARGETS)}")
    target_data = TARGETS[target]
    if option is None:
        return target_data.passes
    if option not in target_data.options:
        raise HlofuseError(
            f"target {target} has no option {option!r}; known: {', '.join(target_data.options) or 'none'}"
        )
    return target_data.options[option]


def before_fusion(
    target: str, device: DeviceDescription | None = None, flags: tuple[str, ...] = ()
) -> tuple[Pipeline, ...]:
    """What `target` runs before its fusion passes; nothing where that is not known for it or the device."""
    return _passes(TARGETS[target].front if target in TARGETS else None, device, flags)


def after_fusion(
    target: str, device: DeviceDescription | None = None, flags: tuple[str, ...] = ()
) -> tuple[Pipeline, ...]:
    """What `target` runs after its fusion passes, up to what is launched; nothing where that is not known."""
    return _passes(TARGETS[target].back if target in TARGETS else None, device, flags)


def _passes(
    where: str | None, device: DeviceDescription | None, flags: tuple[str, ...]
) -> tuple[Pipeline, ...]:
    if where is None:
        return ()
    module, _, name = where.partition(":")
    created: Callable[[DeviceDescription | None, tuple[str, ...]], tuple[Pipeline, ...]]
    created = getattr(importlib.import_module(module), name)
    return created(device, flags)


def compilation(
    target: str, device: DeviceDescription | None = None, option: str | None = None
) -> tuple[Pass, ...]:
    """XLA's passes from the front end to the kernels that run."""
    from hlofuse.passes.base import Pipeline
    from hlofuse.passes.registry import make_pass

    fusion = Pipeline("fusion", [make_pass(p, target, device=device) for p in passes_of(target, option)])
    return (*before_fusion(target, device), fusion, *after_fusion(target, device))
