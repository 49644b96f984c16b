"""Which instructions of a final module are launched, and as what (XLA calls these thunks)."""

from collections.abc import Callable

from hlofuse.analysis.kernels import is_kernel, launched_computations
from hlofuse.analysis.launches import cpu, gpu
from hlofuse.analysis.launches.launch import Launch, LaunchKind
from hlofuse.ir.graph import Instruction, Module

_BACKENDS: dict[str, Callable[[Instruction], Launch | None]] = {
    "cpu": cpu.launch_of,
    "gpu": gpu.launch_of,
}


def launch_of(instruction: Instruction, backend: str) -> Launch | None:
    """What `instruction` launches when its computation runs; None for nothing.

    Nothing is launched for views, constants and parameters, nor for what runs other computations: the
    launches of a loop are those of its body.
    """
    return _BACKENDS.get(backend, _of_any_backend)(instruction)


def _of_any_backend(instruction: Instruction) -> Launch | None:
    if not is_kernel(instruction):
        return None
    if instruction.opcode in ("copy", "copy-start"):
        return Launch("copy")
    return Launch("library" if instruction.opcode == "custom-call" else "kernel")


def launches(module: Module, backend: str) -> list[tuple[Instruction, Launch]]:
    """Everything that a module launches, each once however often its loop runs."""
    found = []
    for computation in launched_computations(module):
        for instruction in computation:
            if (launch := launch_of(instruction, backend)) is not None:
                found.append((instruction, launch))
    return found


__all__ = ["Launch", "LaunchKind", "launch_of", "launches"]
