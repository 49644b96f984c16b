"""XLA releases as data: which there are, and what differs between them."""

from hlofuse.releases.named import ANY, EARLIEST, NAMED, NAMES, NEWEST, REFERENCE, NamedRelease, Span, nearest
from hlofuse.releases.release import AROUND_FUSION, Behaviour, Release, behaviours, release_of

__all__ = [
    "ANY",
    "AROUND_FUSION",
    "EARLIEST",
    "NAMED",
    "NAMES",
    "NEWEST",
    "REFERENCE",
    "Behaviour",
    "NamedRelease",
    "Release",
    "Span",
    "behaviours",
    "nearest",
    "release_of",
]
