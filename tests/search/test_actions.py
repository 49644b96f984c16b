"""Every pass in any order: nothing raises, the module stays sound, and `run` says whether it changed."""

from __future__ import annotations

from random import Random

import pytest

from hlofuse.ir.shape_check import first_misfit
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module
from hlofuse.search.space import ACTIONS, count_ops, default_order
from ..passes.packed import archive
from ..tools.module_checks import check_module

PARTS = 8
SEQUENCES = 60
"""In each part. 10,000 over the same modules, of up to 40 passes each, were tried once without a fault."""


def texts() -> list[str]:
    """The modules before optimizations that XLA was given, two backends' programs."""
    return [
        files["before"]
        for name in ("cpu", "gpu-h100_sxm")
        for case, files in archive(name).items()
        if case.startswith("programs/")
    ]


@pytest.mark.parametrize("part", range(PARTS))
def test_no_order_breaks_a_module(part: int) -> None:
    found = texts()
    for sequence in range(SEQUENCES):
        random = Random(part * SEQUENCES + sequence)
        module = parse_module(random.choice(found))
        tried: list[str] = []
        for _ in range(random.randint(1, 40)):
            action = ACTIONS[random.choice(list(ACTIONS))]
            tried.append(action.name)
            before = print_module(module) if random.random() < 0.2 else None
            opcodes = {i.opcode for i in module.instructions()}
            changed = action.run(module)
            check_module(module)
            assert first_misfit(module) is None, tried
            if before is not None:
                assert changed or print_module(module) == before, tried
            assert action.applies(opcodes) or not changed, tried
            if count_ops(module) > 3000:
                break


def test_evidence_is_in_the_archives() -> None:
    """`XLA's dumps` is said where modules before and after the pass are packed."""
    packed = {case.split("/")[1] for name in ("cpu", "gpu-h100_sxm", "gpu-v100") for case in archive(name)}
    for action in ACTIONS.values():
        assert (action.evidence == "XLA's dumps") == (action.step.name in packed), action.name


def test_the_default_order_is_the_backends_without_its_own_passes() -> None:
    names = [p.name for p in default_order("cpu").flattened()]
    assert names.index("dot_decomposer") < names.index("algsimp")
    assert "layout-assignment" not in names
    assert "float-normalization-bf16" not in names
