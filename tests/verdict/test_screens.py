"""Screens of a verdict in every state: what stays true at any size, and goldens that a person reads."""

from __future__ import annotations

import io
from itertools import product
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from hlofuse.account import Totals
from hlofuse.account.bound import FusionFloor, ProgramFloor
from hlofuse.account.functions import Functions, FunctionShare
from hlofuse.analysis.cost import Cost
from hlofuse.cost.cpu.device import load_cpu
from hlofuse.format import us_text
from hlofuse.ir.record import replace
from hlofuse.reports.common.model import Place
from hlofuse.reports.explain.model import HotKernel
from hlofuse.reports.verdict.model import Share, Suggestion, Tiles, Verdict
from hlofuse.reports.verdict.phrases import kernel_cells, untried_lines
from hlofuse.reports.verdict.text import print_screen
from hlofuse.reports.verdict.verdict import _rank
from hlofuse.reports.whatif.model import Trial
from ..running import Golden

TOTALS = Totals(20, Cost(bytes_read=6000000, bytes_written=4000000), 20, modelled_us=90.0, floor_us=10.0)
GB = 1 << 30


def trial(us: float | None, totals: Totals = TOTALS, kernels: int = 1, **more: Any) -> Trial:
    return Trial(totals, "", us, kernels, kernels, 0, **more)


def suggested(number: int, us: float | None = None, **more: Any) -> Suggestion:
    given = {"trial": trial(20.0 - number if us is None else us), "recipe": "scale-the-summands"} | more
    start = Suggestion("code", f"Do number {number}", "PF009", (f"/src/model.py:{number} f",), 1, trial(0.0))
    return replace(start, **given)


def kernel(number: int, **more: Any) -> HotKernel:
    place = Place(f"fusion.{number}", source=f"/src/model.py:{number} f", final=f"loop_fusion_{number}")
    return replace(HotKernel(place, None, 10.0 - number, 1000000 - number), **more)


UNTRIED = (suggested(8, touched=0.3), suggested(9, touched=0.004))
FUSED, LAUNCHES = Share("fused kernels", 18, 70.0, 8000000), Share("launches", 20, 20.0, 0)
PLAIN = Verdict(
    TOTALS,
    (FUSED, LAUNCHES, Share("sorts", 2, 10.0, 2000000)),
    FusionFloor(4000000, 60.0),
    ProgramFloor(2000000, 5.0, 30.0, ("matmuls", "loops")),
    tuple(map(kernel, range(8))),
    tuple(map(suggested, range(1, 6))),
    replays=12,
    is_ranked=True,
)


def state(*suggestions: Suggestion, **changes: Any) -> Verdict:
    """The plain verdict with other fields, those of its totals among them; `us` is the floor of fusion."""
    totals = {k: changes.pop(k) for k in [*changes] if k in Totals.__struct_fields__}
    floor = FusionFloor(4000000, changes.pop("us", 60.0))
    given = {"suggestions": suggestions or PLAIN.suggestions, "totals": replace(TOTALS, **totals)}
    return replace(PLAIN, **{"floor": floor} | given | changes)


def functions(count: int) -> Functions:
    parts: dict[Any, float] = {"forward": 0.04, "backward": 0.06}
    rows = [FunctionShare("m.py", f"f{n}", 2, 2, 10.0, None, 1000, False, parts) for n in range(count)]
    return Functions("estimated", tuple(rows), {"forward": 0.4, "backward": 0.6})


def screen(v: Verdict, width: int = 100, **how: Any) -> list[str]:
    with io.StringIO() as file:
        print_screen(v, Console(file=file, width=width, color_system=None), None, details=True, **how)
        return [line.rstrip() for line in file.getvalue().splitlines()]


def test_any_numbers_of_suggestions_functions_and_kernels_fit_in_24_lines() -> None:
    """The first suggestion keeps its gain and two kernels stand, whatever else there is."""
    numbers = [*product((0, 1, 2, 5), (0, 2, 8), (1, 8), (0, 3), (0, 1), (60, 100))]
    for count, rows, kernels, notes, is_together, width in Random(0).sample(numbers, 40):
        v = state(
            suggestions=PLAIN.suggestions[:count],
            functions=functions(rows),
            hot_kernels=PLAIN.hot_kernels[:kernels],
            together=((1, 2), trial(30.0)) if is_together else None,
            untried=UNTRIED,
        )
        lines = screen(v, width, notes=[f"Note {n}" for n in range(notes)])
        assert len(lines) <= 24
        assert max(map(len, lines)) <= width
        assert lines[-1].startswith("More: ")
        assert sum("(and 1 note more)" in line for line in lines) == (notes > 2)
        assert sum(line.startswith("  ") and "loop_fusion_" in line for line in lines) >= min(kernels, 2)
        assert not count or "−19.00 µs (19%)" in lines[lines.index("1. Do number 1") + 1]
        every = screen(v, limit=0)
        assert sum("Do number" in line for line in every) == count
        assert any(line.startswith("Together") for line in every) == (is_together and count > 0)
        assert sum("loop_fusion_" in line for line in every) == kernels


def test_suggestions_stand_by_percent_then_those_to_be_measured_then_limitations_of_xla() -> None:
    """A change of unknown time stands by a tenth of what it touches, in place of unknown kernels as 3%."""
    before = replace(TOTALS, floors=1)
    trials = [trial(20.0), trial(None), trial(5.0), trial(None), trial(3.4), trial(None), trial(2.0)]
    touched = {1: 0.6, 3: 0.4}
    order = [suggested(n, trial=t, touched=touched.get(n, 0.0)) for n, t in enumerate(trials)]
    order.insert(1, suggested(10, 20.4, kind="flag", flag="--xla_f=1", recipe="", rule=""))
    measured = trial(None, has_more_code=True)
    order.append(suggested(11, trial=replace(measured, temporary_saved=GB)))
    order += [suggested(12, trial=measured), suggested(13, 50.0, kind="report")]
    account: Any = SimpleNamespace(totals=before)
    assert [s.text for s in _rank(order[::-1], account)] == [s.text for s in order]


NONE: dict[str, Any] = {"suggestions": ()}
SCREENS = {
    "five suggestions, eight functions": state(functions=functions(8)),
    "two that go together": state(together=((1, 2), trial(30.0))),
    "nothing to suggest": state(**NONE, functions=functions(8), untried=UNTRIED),
    "one suggestion, two functions": state(suggested(1), functions=functions(2)),
    "little to gain, much to try": state(suggested(1, 0.5), functions=functions(8), untried=UNTRIED),
}
PADDED = {"name": "a", "source": "m.py:1", "shape": "f32[8,100]", "padded": "100 → 128 lanes", "share": 0.28}
COPIED = {"name": "c", "source": None, "layouts": ["{0,1}", "{1,0}"], "reader": None, "bytes": 200001}
PRECISE = {"name": "p", "source": "m.py:3", "passes": 6, "time_us": 1.0}
HASHED = {"name": "h", "source": "m.py:4", "time_us": 20.0}
TILES = Tiles(0.25, [PADDED], [COPIED, COPIED], [PRECISE, PRECISE | {"passes": 3}], [HASHED, HASHED])
THREE = [PRECISE | {"passes": 3}]
NEAR = Tiles(0.02, [PADDED], [COPIED | {"source": "m.py:2", "reader": "dot.1"}], THREE, [])
EPYC = load_cpu("epyc_2_threads")
FLAG: dict[str, Any] = {"kind": "flag", "rule": "", "recipe": "", "sources": ()}
FEWER = suggested(7, **FLAG, flag="--xla_f=1", trial=replace(trial(0.0), us_saved=None, bytes_saved=4000000))
BYTES: dict[str, Any] = {"modelled_us": None, "program": ProgramFloor(2000000)}
EXACT: dict[str, Any] = {"floor_us": 0.0, "modelled_us": 100.0} | NONE
LINES = tuple(f"/src/a.py:{n} f" for n in range(5))
GAINS = [
    trial(None, has_fewer_library_calls=True),
    trial(None, has_more_code=True, temporary_saved=GB - 1),
    trial(None, has_more_code=True, temporary_saved=GB),
    trial(5.0, temporary_saved=GB - 1),
    trial(5.0, temporary_saved=GB, roughly_timed="sorts"),
    trial(None, replace(TOTALS, modelled_us=150.0)),
    trial(4.0, iteration_us_saved=5.0),
]
LACKING = replace(TOTALS, memory_bytes=5 * GB, memory_size=4 * GB)
FIT = [suggested(n, trial=trial(5.0, temporary_saved=GB, memory_saved=GB + 1 - n)) for n in (1, 2)]
KERNELS = (
    kernel(0, count=3, iterations=10),
    kernel(1, per_iteration=True, in_branch=True, is_floor=True, open_end="sorts"),
    kernel(2, us=30.0, is_floor=True, open_end="library call", is_open=True),
    kernel(3, is_collective=True),
    kernel(4, us=0.0, has_time=False),
)
SENTENCES = {
    "a TPU": state(**NONE, tiles=TILES, hbm_bytes=6000000, vmem_temporary_bytes=1000, untried=UNTRIED[1:]),
    "a TPU, compiled": state(
        **NONE, tiles=NEAR, compiled=3, vmem_temporary_bytes=9, peak_temporary_bytes=8000
    ),
    "a CPU": state(cpu=EPYC, time_source="estimates", launches=30, peak_temporary_bytes=GB),
    "a CPU, a part": state(cpu=EPYC, without_time=1, per_iteration=1, awaited_elements=9),
    "loops": state(
        per_iteration=3, iteration_us=2.0, most_iterations=1000, awaited_elements=2, in_branches=2
    ),
    "loops to an argument": state(host_reads_conditions=True, counts_to_an_argument=True, awaited_elements=1),
    "no kernels": state(**NONE, shares=(), hot_kernels=()),
    "a profile": state(
        measured_us=200.0,
        shares=(replace(FUSED, measured_us=140.0), LAUNCHES),
        hot_kernels=(kernel(0, measured_us=40.0), kernel(1, us=9.1, measured_us=36.0)),
    ),
    "bytes alone": state(suggested(1), **BYTES, us=None, hot_kernels=PLAIN.hot_kernels[:1]),
    "bytes alone, none to save": state(**NONE, **BYTES, floor=FusionFloor(10000000, None), hot_kernels=()),
    "four devices": state(devices=4, host_reads_conditions=True),
    "waits of the host": state(shares=(replace(LAUNCHES, in_command_buffers=20, host_wait_us=0.5),)),
    "waits too short to say": state(shares=(replace(LAUNCHES, in_command_buffers=5, host_wait_us=0.49),)),
    "no time to rank rules": state(**NONE, is_ranked=False),
    "some trials left out": state(**NONE, skipped=3),
    "suggestions, some trials left out": state(skipped=3, is_ranked=False),
    "suggestions, rules not ranked": state(is_ranked=False),
    "a fused module": state(**NONE, is_replayed=False),
    "XLA refused to compile": state(**NONE, not_proved="no JAX\nat all"),
    "XLA compiled all": state(compiled=1),
    "XLA compiled, for nothing": state(**NONE, compiled=2),
    "fusion is near its optimum": state(**NONE, us=98.0),
    "the same, and every time is known": state(**EXACT, us=98.0),
    "the same, and times of 3% are bounds": state(**EXACT | {"floor_us": 3.0, "modelled_us": 97.0}, us=98.0),
    "the same, and times of more are": state(**EXACT | {"floor_us": 3.1, "modelled_us": 96.9}, us=98.0),
    "the same, with a loop": state(**EXACT, us=98.0, launches=21),
    "fusion is not near its optimum": state(**NONE, us=97.9),
    "fusion has nothing left": state(**EXACT, us=100.0),
    "fusion is done, the program not": state(us=99.0),
    "one rule takes some": state(**NONE, best=trial(5.0), best_of="without PF009"),
    "one rule takes more than is left": state(**NONE, best=trial(50.0), best_of="without PF009"),
    "one rule takes little": state(**NONE, best=trial(2.0), best_of="without PF009"),
    "changes save more": state(us=82.0),
    "changes save less": state(us=81.0),
    "flags": state(suggested(1, flag="--xla_f=1", **FLAG), suggested(2, flag="--xla_tpu_f=1", **FLAG)),
    "a limitation of XLA": state(suggested(1, 3.0, kind="report", recipe="")),
    "lines of several places": state(suggested(1, sources=LINES, places=4), suggested(2, sources=LINES[:2])),
    "other gradients and digits": state(suggested(1, is_forward_alone=True), rounding=PLAIN.suggestions[:2]),
    "worth trying": state(
        **NONE, untried=(*UNTRIED, FEWER), functions=replace(functions(2), is_partial=True)
    ),
    "gains that are not known, and of memory": state(
        *(suggested(n, trial=t) for n, t in enumerate(GAINS, 1)),
        peak_temporary_bytes=4 * GB,
        iteration_us=50.0,
        floors=1,
    ),
    "the first fits then": state(*FIT, memory_bytes=5 * GB, memory_size=4 * GB),
    "the first frees enough, and takes it again": state(
        replace(FIT[1], trial=replace(FIT[1].trial, memory_saved=GB, totals=LACKING)),
        memory_bytes=5 * GB,
        memory_size=4 * GB,
    ),
    "kinds of kernels": state(hot_kernels=KERNELS, floors=1, open_ended=1),
}


@pytest.mark.parametrize(
    ("us", "is_open", "is_floor", "has_time"), list(product((0.0, 3.0), *[(False, True)] * 3))
)
def test_a_time_of_nothing_is_not_known_unless_estimated(
    us: float, is_open: bool, is_floor: bool, has_time: bool
) -> None:
    k = kernel(0, us=us, is_open=is_open, is_floor=is_floor, has_time=has_time)
    figure, part, *_ = kernel_cells(k, PLAIN)
    has_figure = not is_open and (us > 0 or (has_time and not is_floor))
    assert (figure, part) == ((us_text(us, is_floor), f"{us:.0f}%") if has_figure else ("not known", ""))


def test_screens_of_24_lines(golden: Golden) -> None:
    shown = [(f"── {name}, {n} columns", screen(v, n)) for name, v in SCREENS.items() for n in (60, 100)]
    golden("verdict/screens.txt", "".join("\n".join([title, *lines, ""]) for title, lines in shown))


def test_sentences_of_every_state(golden: Golden) -> None:
    """The lines that a whole screen has in this state and not in the plain one."""
    found, plain = "", screen(PLAIN, limit=0)
    for name, v in SENTENCES.items():
        lines = dict.fromkeys([*screen(v, limit=0), *untried_lines(v)])
        found += "\n".join([f"── {name}", *(line for line in lines if line not in plain), ""])
    golden("verdict/sentences.txt", found)
