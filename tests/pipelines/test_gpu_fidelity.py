"""Target `gpu` against XLA: kernels, priorities, refusals, every step but for ties."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from hlofuse.inputs.unique_ids import ids_of_proto
from hlofuse.ir import parse_module
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.ir.verifier import verify_module as graph_problems
from hlofuse.passes.priority_fusion.following import Follower
from hlofuse.pipelines import Replay, replay
from hlofuse.trace.priority_record import FusionStep, PriorityRecord, read_priority_record
from hlofuse.verifier import verify_module

DATA = Path(__file__).parent.parent / "data"
ARCHIVES = ("gpu.tar.xz", "gpu-models.tar.xz")  # small programs, and those that look like parts of models


@dataclass(slots=True)
class Case:
    """What XLA:GPU was given and what it made of it."""

    device: str
    texts: dict[str, str] = field(default_factory=dict)
    ids: UniqueIds | None = None
    record: PriorityRecord = field(default_factory=PriorityRecord)

    @property
    def before(self) -> str:
        return self.texts["before.hlo"]

    @property
    def after(self) -> str:
        return self.texts[max(self.texts, key=lambda name: name[:2] if name[0].isdigit() else "")]

    def replay(self, *, ids: bool, guide: Follower | None = None) -> Replay:
        module = parse_module(self.before)
        return replay(module, "gpu", device=self.device, ids=self.ids if ids else None, guide=guide)


@cache
def cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for archive in ARCHIVES:
        with tarfile.open(DATA / archive) as tar:
            for member in tar:
                name, _, file = member.name.rpartition("/")
                case = found.setdefault(name, Case(name.partition("/")[0]))
                content = tar.extractfile(member)
                assert content is not None
                data = content.read()
                if file.endswith(".hlo"):
                    case.texts[file] = data.decode()
                elif file.endswith(".pb"):
                    case.ids = ids_of_proto(data)
                else:
                    case.record = read_priority_record(data.decode())
    return found


NAMES = sorted(cases())
EXAMPLES = NAMES[::6]
# XLA does not always repeat these steps itself: equal pairs share a tiling, and threads race for the first.
LARGE = [n for n in NAMES if n.endswith("/gpt2_block_grad")]


def test_there_is_something_to_compare() -> None:
    assert len(NAMES) > 350
    assert {c.device for c in cases().values()} == {"h100_sxm", "v100", "a100_sxm_40", "b200"}


@pytest.mark.parametrize("name", NAMES)
def test_the_kernels_are_xlas_from_text_alone(name: str) -> None:
    case = cases()[name]
    v = verify_module(parse_module(case.before), parse_module(case.after), target="gpu", device=case.device)
    assert v.partition, str(v.difference)


@pytest.mark.parametrize("name", NAMES)
def test_every_step_is_xlas_but_for_ties(name: str) -> None:
    case = cases()[name]
    follower = Follower(case.record)
    case.replay(ids=True, guide=follower)
    follower.finish()
    assert follower.disagreements == []
    assert follower.agreed == follower.total


def test_with_ids_most_sequences_are_exact() -> None:
    exact = 0
    for name in EXAMPLES:
        case = cases()[name]
        ours = [
            (e.producer, e.consumer)
            for e in case.replay(ids=True).events
            if e.event == "fuse" and e.pass_name == "priority-fusion"
        ]
        xla = [(s.producer, s.consumer) for s in case.record.steps if isinstance(s, FusionStep)]
        exact += ours == xla
    assert exact >= 0.8 * len(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES + LARGE)
def test_the_graph_stays_sound(name: str) -> None:
    assert graph_problems(cases()[name].replay(ids=False).after) == []
