"""The targets: data, not logic."""

from __future__ import annotations

from dataclasses import dataclass

from hlofuse.ir.errors import HlofuseError


@dataclass(frozen=True, slots=True)
class Addition:
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
    restores_users: bool = False
    """The order of users is that which earlier passes leave (`hlofuse.order.legacy`)."""
    additions: tuple[Addition, ...] = ()
    """What XLA has, or once had, beyond these passes."""


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
        additions=(
            Addition(
                "multi-output",
                "CpuMultiOutputFusion, behind a flag in XLA",
                ("cpu_multi_output_fusion", "tuple-simplifier"),
                ("MO", "TS"),
            ),
        ),
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
        additions=(
            Addition(
                "horizontal",
                "HorizontalLoopFusion and HorizontalInputFusion, which XLA had until 0.4.35",
                ("horizontal_loop_fusion", "horizontal_input_fusion", "cse", "dce"),
                ("HF",),
            ),
        ),
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
        restores_users=True,
    ),
}

OPTION_FLAGS = {"triton-multi-output": "--xla_gpu_unsupported_enable_triton_multi_output_fusion=true"}
"""The XLA flag of an option (`Target.options`), where XLA has one."""


def passes_of(target: str, option: str | None = None) -> tuple[str, ...]:
    """The pass list of a target or of one of its variants."""
    if target not in TARGETS:
        raise HlofuseError(f"there is no target {target!r}; known: {', '.join(TARGETS)}")
    known = TARGETS[target]
    if option is None:
        return known.passes
    if option not in known.options:
        raise HlofuseError(
            f"target {target} has no option {option!r}; known: {', '.join(known.options) or 'none'}"
        )
    return known.options[option]
