"""The page's last step is the module that the replay ends with: kernels, and what reads what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from hlofuse.account import observed_replay
from hlofuse.analysis.kernels import kernels, launched_computations
from hlofuse.compilation import CompilationInput, replay_config
from hlofuse.explorer import page_html, page_of
from hlofuse.explorer.page import page_json
from hlofuse.inputs import load
from hlofuse.inputs.wire_format import unique_ids_for
from hlofuse.ir import Module, parse_module
from hlofuse.ir.graph import Instruction
from hlofuse.ir.unique_ids import UniqueIds
from hlofuse.reports.verdict import verdict
from ..pipelines.cases import CORPUS, packed
from ..pipelines.gpu_cases import cases as gpu_cases
from ..pipelines.legacy_cases import cases as legacy_cases
from .browser import Visit

WHOLE = {
    "cpu": ("cpu", None),
    "gpu-h100_sxm": ("gpu", "h100_sxm"),
    "gpu-a100_sxm_40": ("gpu", "a100_sxm_40"),
    "gpu-b200": ("gpu", "b200"),
    "gpu-v100": ("gpu", "v100"),
    "gpu-legacy-a100": ("gpu-legacy", "a100_sxm_40"),
    "gpu-legacy-v100": ("gpu-legacy", "v100"),
}

# Names of all boxes there are in the end, whether each is a kernel, and the names of those it reads.
LAST_STEP = """(text) => {
    const [run, strings, kinds, files] = JSON.parse(text);
    const r = new explorer.run.constructor(run, strings, kinds, files), s = new explorer.state.constructor(r);
    s.goTo(r.length);
    const bare = (b) => b < r.ops.count && r.ops.opcode[b] === "get-tuple-element" && !s.fused[b];
    const through = (b) => [...s.inputs(b)].flatMap((i) => (bare(i) ? through(i) : [i]));
    const found = {};
    for (let b = 0; b < r.boxes; b++)
        if (s.alive[b] && !bare(b)) found[s.nameOf(b)] = [s.isKernel(b), through(b).map((i) => s.nameOf(i))];
    return found;
}"""


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    """A page whose scripts follow the data of other modules, too."""
    file = tmp_path_factory.mktemp("page") / "page.html"
    module = parse_module("HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n")
    html = page_html(page_of({"": observed_replay(module, replay_config("cpu", None))}))
    file.write_text(html, encoding="utf-8")
    seen = Visit(browser, file)
    yield seen
    seen.close()


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No change of the module is tried for the verdict, of which the steps show nothing."""
    monkeypatch.setattr(verdict, "TRIED_UP_TO", 0)


def assert_ends_as_module(
    page: Visit, module: Module, target: str, device: str | None, ids: UniqueIds | None = None
) -> None:
    observed = observed_replay(CompilationInput(module, ids), replay_config(target, device))
    data = page_json(page_of({"": observed}))
    reported = page.page.evaluate(
        LAST_STEP, json.dumps([data["runs"][0], *map(data.get, ("strings", "kinds", "files"))])
    )
    after, given = observed.replay.after, {i.name for i in module.instructions()}

    def bookkeeping(i: Instruction) -> bool:
        """What takes results of a kernel apart or puts them together is no box, unless it was given."""
        return i.opcode == "get-tuple-element" or (i.opcode in ("bitcast", "tuple") and i.name not in given)

    def following(i: Instruction) -> set[str]:
        return {n for o in i.operands for n in (following(o) if bookkeeping(o) else {o.name})}

    launched = set(kernels(after))
    wanted = {
        i.name: (i in launched, following(i))
        for c in launched_computations(after)
        for i in c
        if not bookkeeping(i)
    }
    found = {name: (kernel, set(reads)) for name, (kernel, reads) in reported.items()}
    # The trace does not say which part of an operation with too many operands reads which of them.
    split = {n for e in observed.replay.events if e.rule == "VS001" for n in e.added}
    for name in split & wanted.keys():
        assert found.pop(name)[0] == wanted.pop(name)[0]
    assert found == wanted


# The squares and the sum of them are one kernel, which holds the zero that `sums` begins with, while the
# reduction of the row itself, merged in later, reads that zero from outside.
SHARED_CONSTANT = """HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  x = f32[512,1000]{1,0} parameter(0)
  zero = f32[] constant(0)
  rows = f32[512]{0} reduce(x, zero), dimensions={1}, to_apply=sum
  squares = f32[512,1000]{1,0} multiply(x, x)
  sums = f32[512]{0} reduce(squares, zero), dimensions={1}, to_apply=sum
  all = f32[] reduce(sums, zero), dimensions={0}, to_apply=sum
  ROOT t = (f32[512]{0}, f32[]) tuple(rows, all)
}
"""


def test_a_copy_inside_and_the_original_outside(page: Visit) -> None:
    assert_ends_as_module(page, parse_module(SHARED_CONSTANT), "gpu-legacy", "v100")


@pytest.mark.usefixtures("untried")
@pytest.mark.parametrize("name", sorted(packed("cpu"))[::8])
def test_cpu(page: Visit, name: str) -> None:
    assert_ends_as_module(page, parse_module(packed("cpu")[name].before), "cpu", None)


@pytest.mark.usefixtures("untried")
@pytest.mark.parametrize("name", sorted(gpu_cases("gpu"))[::8])
def test_gpu(page: Visit, name: str) -> None:
    case = gpu_cases("gpu")[name]
    assert_ends_as_module(page, parse_module(case.before), "gpu", case.device, case.ids)


@pytest.mark.usefixtures("untried")
@pytest.mark.parametrize("name", sorted(legacy_cases())[::8])
def test_legacy(page: Visit, name: str) -> None:
    device = name.partition("/")[0]
    assert_ends_as_module(page, parse_module(legacy_cases()[name].before), "gpu-legacy", device)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the reference corpus is not beside the checkout")
@pytest.mark.usefixtures("untried")
@pytest.mark.parametrize("corpus", WHOLE)
def test_whole_corpus(page: Visit, corpus: str) -> None:
    """Each program on one device: a page takes a tenth of a second."""
    target, device = WHOLE[corpus]
    files = sorted(Path(CORPUS / corpus).glob("*/before.hlo"))
    assert len(files) >= 62
    for file in files[list(WHOLE).index(corpus) :: len(WHOLE)]:
        module = load(str(file))
        assert_ends_as_module(page, module, target, device, unique_ids_for(module))
