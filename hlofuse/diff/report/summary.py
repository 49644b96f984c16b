"""A diff put in the order a person asks: what is the result, what became of fusion, then the rest."""

from __future__ import annotations

from dataclasses import dataclass

from hlofuse.diff.matching import TRIVIAL
from hlofuse.diff.model import Changed, Matched, ModuleDiff, Moved
from hlofuse.diff.report.by_source import SourceLine, by_source
from hlofuse.diff.report.clusters import Cluster, clusters
from hlofuse.diff.report.groups import (
    ChangeGroup,
    FusionGroup,
    MovedGroup,
    change_groups,
    fusion_groups,
    moved_groups,
)
from hlofuse.diff.times import Times


@dataclass(frozen=True, slots=True)
class Summary:
    """What a report shows."""

    diff: ModuleDiff
    fusions: tuple[FusionGroup, ...]
    clusters: tuple[tuple[Cluster, ...], ...]
    """Each group: clusters alike in everything but names."""
    changes: tuple[ChangeGroup, ...]
    moved: tuple[MovedGroup, ...]
    following: int
    """Changes that follow from those told."""
    sources: tuple[SourceLine, ...]
    duplicated: tuple[Matched, ...]
    duplicated_trivial: int
    """Constants, broadcasts and the like among the duplicated."""
    times: Times | None = None


def summarize(diff: ModuleDiff, times: Times | None = None) -> Summary:
    """Group a diff for a report; `times` adds estimates of time."""
    causes = diff.causes
    duplicated = [m for m in diff.duplicated if m.before[0].instruction.opcode not in TRIVIAL]
    return Summary(
        diff,
        tuple(fusion_groups(diff)),
        tuple(clusters(diff)),
        tuple(change_groups(e for e in causes if isinstance(e, Changed))),
        tuple(moved_groups(e for e in causes if isinstance(e, Moved))),
        sum(isinstance(e, Changed) and bool(e.because) for e in diff.edits),
        tuple(by_source(diff, times)),
        tuple(sorted(duplicated, key=lambda m: -len(m.after))),
        len(diff.duplicated) - len(duplicated),
        times,
    )
