"""The XLA releases whose fusion is repeated, as jaxlib counts them, oldest first."""

import re
from dataclasses import dataclass
from functools import lru_cache

from hlofuse.ir.errors import HlofuseError


@dataclass(frozen=True, slots=True)
class NamedRelease:
    """A release that was compared with XLA."""

    name: str
    """jaxlib's, such as `0.8.3`; the other releases of its series are taken for it."""
    source: str
    """The tag or commit of XLA's source that was read; empty where there is none, and XLA alone was asked."""

    @property
    def series(self) -> str:
        """`0.8` of `0.8.3`; of the releases before 0.5 each is its own."""
        first, second = self.name.split(".")[:2]
        return self.name if (first, second) == ("0", "4") else f"{first}.{second}"


NAMED = (
    NamedRelease("0.4.35", "76da7301"),
    NamedRelease("0.4.38", "upstream-jax-v0.4.38"),
    NamedRelease("0.5.3", "upstream-jax-v0.5.3"),
    NamedRelease("0.6.2", "upstream-jax-v0.6.2"),
    NamedRelease("0.7.2", "upstream-jax-v0.7.2"),
    NamedRelease("0.8.3", "upstream-jax-v0.8.3"),
    NamedRelease("0.9.2", "upstream-jax-v0.9.2"),
    NamedRelease("0.10.2", "upstream-jax-v0.10.2"),
    NamedRelease("0.11.1", "upstream-jax-v0.11.1"),
    NamedRelease("0.11.2", ""),
    NamedRelease("0.12.0.1", ""),
)
NAMES = tuple(named.name for named in NAMED)
EARLIEST, NEWEST = NAMES[0], NAMES[-1]
REFERENCE = "0.11.1"
"""The newest release whose source could be read: what is repeated where nothing tells the release, and
the one whose passes before and after fusion are repeated."""


@dataclass(frozen=True, slots=True)
class Span:
    """Releases from `since` to `until`, both within; an empty text is an open end.

    A bound is a release or a series: until 0.8 means until the last of 0.8.
    """

    since: str = ""
    until: str = ""

    def includes(self, name: str) -> bool:
        """True if the release of that name is within."""
        return _includes(self.since, self.until, name)

    def __str__(self) -> str:
        if self.since and self.until:
            return self.since if self.since == self.until else f"{self.since} to {self.until}"
        if self.until:
            return f"{self.until} or earlier"
        return f"{self.since} or later" if self.since else "any release"


ANY = Span()


def numbers(name: str) -> tuple[int, ...]:
    """`0.8.3` as (0, 8, 3)."""
    return tuple(int(n) for n in name.split("."))


@lru_cache(maxsize=4096)
def _includes(since: str, until: str, name: str) -> bool:
    number = numbers(name)
    if since and number < numbers(since):
        return False
    return not until or number[: len(numbers(until))] <= numbers(until)


def nearest(text: str) -> tuple[str, str]:
    """The named release for a version that a user gives, and a note where it is another one.

    That of the same series, else the newest before it. HlofuseError for text that is no version, with those
    there are, and for one before the oldest.
    """
    version = text.strip().removeprefix("jaxlib").removeprefix("jax").strip(" =v")
    match = re.fullmatch(r"\d+(?:\.\d+)+", version)
    if match is None:
        raise HlofuseError(f"--xla {text}: expected a jaxlib release, such as {REFERENCE}, or auto")
    if version in NAMES:
        return version, ""
    number = numbers(version)
    of_series = [n.name for n in NAMED if number[: len(numbers(n.series))] == numbers(n.series)]
    earlier = [name for name in of_series or NAMES if numbers(name) < number]
    if not earlier and not of_series:
        raise HlofuseError(f"--xla {text}: expected {EARLIEST} or later")
    name = earlier[-1] if earlier else of_series[0]
    if of_series and len(number) == 2:  # a series, not a release
        return name, ""
    return name, f"{version} is replayed as {name}, the nearest verified release"
