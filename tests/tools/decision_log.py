"""Our trace of target gpu-legacy as the lines XLA 0.4.35 logs about its decisions.

XLA's lines come from `--vmodule` messages of its passes, printed instructions cut down to their names.
What a trace cannot give, because nothing is decided there:

- "Considering X", "Considering X and Y", "Looking at producer P and its consumer C": a pair is looked at;
  the decision about it follows, and is compared, except for a pair that is allowed and not chosen;
- "Profitable check failed …", "horizontal fuse get instruction span …", "next candidate: X": said besides the
  refusal or the fusion they belong to;
- "FusionInstructionMerger EXIT …", "Running full HLO cost analysis …", "Fusion count: …": sums;
- terms of the cost model, compared by `tests/cost/gpu/test_merging.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from hlofuse.compilation import Compilation
from hlofuse.trace import Event

DECISION = re.compile(
    r"(?:not fusing operand|Operand |Fusing |created new fusion|Considering producer|Not fusing |Merged |"
    r"Fuse |Not considering |\S+ is a constant\.|sliced_input_fusion=\d rejects|different |hit max |"
    r"Fused \d+ instructions)"
)
"""The lines of XLA's log that are compared."""
_PIPELINE_OF_HORIZONTAL = ("horizontal_loop_fusion", "horizontal_input_fusion")


def our_decisions(replay: Compilation) -> list[str]:
    """All lines of one replay, a header before each pass."""
    lines, pipeline = [], "fusion"
    for done in replay.passes:
        if done.name in _PIPELINE_OF_HORIZONTAL:
            pipeline = "horizontal_fusion"
        lines.append(f"# {pipeline} {done.name}")
        render = _RENDERERS.get(done.name)
        if render is not None:
            lines += render(done.events)
    return lines


def without_repeats(lines: Iterable[str]) -> list[str]:
    """Each line once within a run of a pass, as the logs of large programs were cut down."""
    remaining: list[str] = []
    seen: set[str] = set()
    for line in lines:
        if line.startswith("#"):
            seen = set()
        if line not in seen:
            remaining.append(line)
            seen.add(line)
    return remaining


def xla_decisions(log: Iterable[str]) -> list[str]:
    """The lines of XLA's log that tell decisions."""
    return [line for line in log if line.startswith("#") or DECISION.match(line)]


def _instruction_fusion(events: list[Event]) -> Iterator[str]:
    for e in events:
        if e.event == "fuse":
            yield f"Fusing {e.producer} into {e.consumer}"
            if e.created:
                yield f"created new fusion: {e.fusion}"
        elif e.rule == "IF001":
            yield f"Operand ({e.producer}) of {e.consumer} is not fusible"
        else:
            yield f"not fusing operand {e.producer} into {e.consumer} because {e.reason}"


def _fusion_merger(events: list[Event]) -> Iterator[str]:
    for (event, producer), group in groupby(events, key=lambda e: (e.event, e.producer)):
        yield f"Considering producer {producer}"
        own = list(group)
        if event == "fuse":
            users = ", ".join(str(e.consumer) for e in own)
            yield f"Merged fusion instruction: {producer} into users {{ {users} }}"
        else:
            yield f"Not fusing fusion |{producer}| with all of it's users due to: {own[0].reason}"


def _multi_output_fusion(events: list[Event]) -> Iterator[str]:
    for e in events:
        if e.event == "fuse" and e.kind == "sibling":
            yield f"Fuse siblings {e.consumer} and {e.producer}"
        elif e.event == "fuse" and e.created:
            yield f"Fuse producer {e.producer} and its consumer {e.consumer} into {e.fusion}"
        elif e.event == "fuse":
            yield f"Fuse producer {e.producer} into its consumer {e.consumer}"
        elif e.rule in ("GM003", "GM004"):
            yield str(e.reason).replace(" = ", "")
        elif e.rule == "GM034" or e.consumer is None:
            continue  # not logged
        elif "both_read" in e.figures:
            yield f"Not fusing siblings |{e.consumer}| and |{e.producer}| due to: {e.reason}"
        else:
            yield (
                f"Not considering fusion of producer |{e.producer}| into consumer |{e.consumer}| due to: "
                f"{e.reason}"
            )


def _horizontal_loop_fusion(events: list[Event]) -> Iterator[str]:
    for (event, fusion), group in groupby(events, key=lambda e: (e.event, e.fusion)):
        own = list(group)
        if event == "fuse":
            yield f"Fused {len(own)} instructions into: {fusion}"
        else:
            yield from (str(e.reason) for e in own)


def _horizontal_input_fusion(events: list[Event]) -> Iterator[str]:
    for e in events:
        if e.event == "fuse":
            yield f"Fuse {e.producer} into {e.consumer}"


_RENDERERS = {
    "fusion": _instruction_fusion,
    "fusion_merger": _fusion_merger,
    "multi_output_fusion": _multi_output_fusion,
    "horizontal_loop_fusion": _horizontal_loop_fusion,
    "horizontal_input_fusion": _horizontal_input_fusion,
}
