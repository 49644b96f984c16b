"""The note on a module before optimizations that repeated passes brought to the fusion input."""

from collections import Counter

from hlofuse.compilation import Compilation
from hlofuse.inputs.dump_names import FUSION_STAGES
from hlofuse.pipelines.stage import Stage
from hlofuse.pipelines.targets import before_fusion
from hlofuse.releases import AROUND_FUSION

BRIEF = "approximate: from a module before optimizations"
"""The note where there is room for one line."""

_BEFORE = "APPROXIMATE: this is a module before optimizations. "
_COUNTED = "Figures are those of XLA's final module; the decisions are replayed from before optimizations. "
_BASIC = (
    "Calls were inlined; tuples, duplicate and unused operations and reshapes were simplified. XLA's other"
    " passes before fusion were not replayed."
)

_EXACT_HINT = ' For XLA\'s own decisions, run the program with XLA_FLAGS="{flags}" and give hlofuse DIR.'


def lowering_note(lowering: Compilation) -> str:
    """The passes that were repeated and those that were not, and how to get XLA's own decisions."""
    target = lowering.target
    worth = _worth(lowering) if before_fusion(target, lowering.config.device) else _BASIC
    hint = _EXACT_HINT.format(flags=FUSION_STAGES[target].flags) if target in FUSION_STAGES else ""
    return _BEFORE + worth + hint


def with_xla_final(note: str) -> str:
    """The note of a replay whose figures are of XLA's own final module."""
    return note.replace(_BEFORE, _COUNTED)


def _worth(lowering: Compilation) -> str:
    """The passes that were repeated, and those that had work here and were not."""
    span = lowering.span(Stage.INPUT)
    missing = [
        f"{name} ({', '.join(f'{n} {opcode}' for opcode, n in sorted(found.items()))})"
        for name, found in span.not_repeated.items()
    ]
    left = Counter(s.pass_name for s in span.left_alone if s.pass_name not in span.not_repeated)
    missing += [f"{name} (for {n} {'instruction' if n == 1 else 'instructions'})" for name, n in left.items()]
    text = f"The passes before fusion were replayed first, as in XLA {AROUND_FUSION.name}."
    return f"{text} Not replayed: {', '.join(missing)}." if missing else text
