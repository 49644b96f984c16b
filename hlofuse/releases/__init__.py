"""XLA releases as data: which there are, and what differs between them."""

from hlofuse.releases.named import ANY, NAMED, NAMES, NEWEST, OLDEST, REFERENCE, NamedRelease, Span, nearest
from hlofuse.releases.release import OUTSIDE_FUSION, Behaviour, Release, behaviours, release_of

__all__ = [
    "ANY",
    "NAMED",
    "NAMES",
    "NEWEST",
    "OLDEST",
    "OUTSIDE_FUSION",
    "REFERENCE",
    "Behaviour",
    "NamedRelease",
    "Release",
    "Span",
    "behaviours",
    "nearest",
    "release_of",
]
