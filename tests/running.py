"""What tests share: types of the fixtures in conftest.py, and looking things up."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hlofuse.compilation import Compilation, CompilationInput, Span, compile, replay_config
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Instruction, Module
from hlofuse.pipelines.targets import Stage


@dataclass(frozen=True)
class Result:
    """What a command did."""

    status: int
    out: str
    err: str


def lowered(
    module: Module, target: str, device: DeviceDescription | None = None, flags: tuple[str, ...] = ()
) -> Span:
    """The passes before fusion on a module before optimizations."""
    config = replay_config(target, device, xla_flags=flags)
    return compile(CompilationInput(module, stage=Stage.BEFORE), config, until=Stage.INPUT).span(Stage.INPUT)


def finished(module: Module, target: str, device: DeviceDescription | None = None) -> Compilation:
    """The passes after fusion on a fused module."""
    config = replay_config(target, device)
    return compile(CompilationInput(module, stage=Stage.FUSED), config, until=Stage.SCHEDULED)


def load_tool(name: str) -> Any:
    """The module of `tools/NAME.py`."""
    file = Path(__file__).parents[1] / "tools" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{name}_tool", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look it up there
    spec.loader.exec_module(module)
    return module


def find(module: Module, name: str) -> Instruction:
    """The instruction of that name, which is there."""
    found = module.find(name)
    assert found is not None
    return found


class Run(Protocol):
    """Runs the command line in this process."""

    def __call__(
        self, *args: object, columns: int = 80, stdin: bytes | None = None, **env: str
    ) -> Result: ...


class Golden(Protocol):
    """Compares with a golden file."""

    def __call__(self, name: str, text: str) -> None: ...
