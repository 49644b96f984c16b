"""Trying a recipe: its change is written into a copy of the module, and fusion is replayed on that."""

from collections.abc import Sequence
from dataclasses import replace

from hlofuse.account import Observed, observed_replay
from hlofuse.cost.gpu.shared_tables import SharedTables
from hlofuse.ir.copy import copy_module
from hlofuse.passes.algebraic.constant_folding import HloConstantFolding
from hlofuse.passes.dce import HloDCE
from hlofuse.passes.gpu.softmax_rewriter_triton import SoftmaxRewriterTriton
from hlofuse.pipelines.gpu.after_layouts import has_triton
from hlofuse.pipelines.gpu.steps import ALGSIMP_LAYOUTS, CSE
from hlofuse.replay import ReplayConfig, ReplayInput
from hlofuse.reports.advice.recipe import Finding, Recipe
from hlofuse.trace import Recorder


def tried(
    input: ReplayInput, config: ReplayConfig, recipe: Recipe, findings: Sequence[Finding], cache: SharedTables
) -> tuple[Observed, tuple[Finding, ...]] | None:
    """The replay of the module with the change in all places, and those where it could be made.

    None where it could be made in none.
    """
    if recipe.rewrite is None:
        return None
    module = copy_module(input.module)
    changed = tuple(f for f in findings if recipe.rewrite(module, f))
    if not changed:
        return None
    recorder = Recorder()
    HloConstantFolding().run(module, recorder)
    HloDCE().run(module, recorder)
    if config.device is not None and has_triton(config.device):
        for step in (ALGSIMP_LAYOUTS, CSE, SoftmaxRewriterTriton(config.device)):
            step.run(module, recorder)
    # What XLA recorded is about the module as it was.
    changed_input = replace(input, module=module, ids=None, record=None, record_file="", events=())
    return observed_replay(changed_input, config, cache=cache, totals_only=True), changed
