"""The decisions about one instruction, or about a pair of them: plain data."""

from collections.abc import Sequence

from hlofuse.account import PairDetail
from hlofuse.format import fields
from hlofuse.ir import Json, Record, Strings
from hlofuse.reports.common.costs import detail_json
from hlofuse.reports.common.model import CreatedBy, Place, created_by_json, place_json
from hlofuse.rules.catalogue import Rule
from hlofuse.trace import Event
from hlofuse.trace.provenance import Change


class Decision(Record):
    """One decision; the same one taken again later is drawn together with it."""

    event: Event  # The first time
    steps: tuple[int, ...]
    rule: Rule


class Story(Record):
    described: Place
    fate: str
    """`fused` (inside the kernels named), `kernel` (runs on its own), `no kernel` (nothing runs), `gone`,
    `inside` (part of `holder` all along), or `added` (by a pass after fusion)."""
    kernels: tuple[Place, ...] = ()  # The kernels it ended in
    holds: Strings = ()  # For a fusion: the instructions of the input inside
    as_producer: tuple[Decision, ...] = ()  # Going into its users
    as_consumer: tuple[Decision, ...] = ()  # Taking its operands in
    rewrites: tuple[Decision, ...] = ()
    holder: Place | None = None
    """For `inside`: the fusion, reduce, sort… that it is a part of; passes decide about that one. For
    `kernel`: the call of the final module that is one kernel and holds it; None without one."""
    before_fusion: tuple[Change, ...] = ()  # The rewrites before fusion that led here
    meant: Strings = ()  # For a kernel that a line or an `op_name` means: the input's operations that have it
    created_by: tuple[CreatedBy, ...] = ()  # The passes before fusion that created it
    copies: str | None = None  # For `added`: the final name of what it copies, where it is a copy
    us: float | None = None  # Microseconds of one launch of a kernel; None without an estimate
    runs: int = 1
    per_iteration: bool = False  # In a loop of unknown length: one iteration counts
    is_floor: bool = False  # `us` is a lower bound
    limited_by: str = ""  # `memory-bound` and so on, of a kernel with an estimate
    apart: tuple[tuple[Place, Rule], ...] = ()
    """The other kernels that read or feed this one, each with the last rule that refused the two."""
    communication: Strings = ()
    """For a collective: what it sends, what runs meanwhile, and why others are not combined with it."""


class PairAnswer(Record):
    producer: Place
    consumer: Place
    swapped: bool  # They were named the other way round
    outcome: str
    """`fused`, `refused`, `does not pay` (slower), `not considered` (never asked), `apart` (no edge)."""
    settled_by: Decision | None
    decisions: tuple[Decision, ...]
    shared: tuple[Place, ...]  # Kernels that hold both
    producer_kernels: tuple[Place, ...]
    consumer_kernels: tuple[Place, ...]
    bytes_between: int  # Size of the producer's value, in bytes
    path: Strings = ()  # `apart`: how the producer's value reaches the consumer, if it does
    cost: PairDetail | None = None  # Estimates: of a fused pair at that step, of others in the final module
    refused_user: str | None = None
    """The user that the verdict was about, where it is another: priority fusion takes all users or none."""
    inside: tuple[tuple[str, str], ...] = ()
    """A name that was asked about and is only a part of the producer or the consumer, and which of them."""

    before_fusion: tuple[Change, ...] = ()  # The rewrites before fusion that led to these two
    created_by: tuple[CreatedBy, ...] = ()  # Passes before fusion that created the two, where they are apart

    @property
    def forbidden(self) -> bool:
        """A rule keeps the two apart, whatever they cost."""
        return self.outcome == "refused" and not (
            self.settled_by and "us_fused" in self.settled_by.event.figures
        )


SCHEMA = "hlofuse.why/3"


def answers_json(answers: Sequence[Story | PairAnswer], queries: Sequence[str]) -> Json:
    """The answer, or all of them in `answers` where the names have several meanings."""
    if len(answers) == 1:
        return {**why_json(answers[0]), "asked": list(queries)}
    each = [{k: v for k, v in why_json(a).items() if k != "schema"} for a in answers]
    return {"schema": SCHEMA, "about": "several", "asked": list(queries), "answers": each}


def why_json(answer: Story | PairAnswer) -> Json:
    """A story or a pair as JSON values; `about` tells which."""
    if isinstance(answer, Story):
        return {
            "schema": SCHEMA,
            "about": "instruction",
            "instruction": place_json(answer.described),
            "fate": answer.fate,
            **fields(answer, "holder kernels", place_json),
            **fields(answer, "holds meant copies"),
            **fields(answer, "as_producer as_consumer", _decision),
            **fields(answer, "made_by=created_by", created_by_json),
            **fields(answer, "rewrites", _decision),
            **_before_fusion(answer),
        }
    return {
        "schema": SCHEMA,
        "about": "pair",
        **fields(answer, "producer consumer", place_json),
        "inside": [{"name": name, "holder": holder} for name, holder in answer.inside],
        **fields(answer, "swapped outcome said_of=refused_user"),
        **fields(answer, "settled_by decisions", _decision),
        **fields(answer, "shared_kernels=shared producer_kernels consumer_kernels", place_json),
        **fields(answer, "bytes_between path"),
        **fields(answer, "made_by=created_by", created_by_json),
        "cost": detail_json(answer.cost),
        **_before_fusion(answer),
    }


def _before_fusion(answer: Story | PairAnswer) -> Json:
    """Only of names that are not there at the input of fusion."""
    changes = [fields(c, "name what pass=pass_name by") for c in answer.before_fusion]
    return {"before_fusion": changes} if changes else {}


def _decision(d: Decision) -> Json:
    e, own = d.event, "from=removed to=added" if d.event.event == "rewrite" else "producer consumer"
    return {
        **fields(e, "pass=pass_name event"),
        **fields(d, "steps rule=rule.code title=rule.title"),
        **fields(e, f"reason figures {own}{' fusion created duplicated' if e.event == 'fuse' else ''}"),
    }
