"""What may watch a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlofuse.ir.graph import Module
from hlofuse.ir.text.printer import print_module
from hlofuse.passes.fusion.priority_fusion.observers import Observer

if TYPE_CHECKING:
    from hlofuse.replay.result import PassResult


class ReplayObserver(Observer):
    """Sees every decision of priority fusion, and the module after each pass."""

    def after_pass(self, done: PassResult, module: Module) -> None:
        """A pass has run; `module` is what it left, to be read only."""


class ModuleTexts(ReplayObserver):
    """Keeps the text of the module after each pass (`PassResult.module_text`)."""

    def after_pass(self, done: PassResult, module: Module) -> None:
        done.module_text = print_module(module)
