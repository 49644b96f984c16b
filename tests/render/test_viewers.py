"""`render` for other projects' viewers: Model Explorer's graphs and Perfetto's traces."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from hlofuse.account import Account, KernelTimes
from hlofuse.compilation import compile
from hlofuse.inputs import load
from hlofuse.ir import Module, parse_module
from hlofuse.pipelines import device_of
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.render.viewers import MOST_ITERATIONS, LaunchedModule, to_model_explorer, to_trace

from ..running import Golden, Run
from .modules import FUSED, LOOP

GPU = ("--device", "h100_sxm")
LOOP_OF_50 = LOOP.replace(
    "while(init), condition=cond, body=body",
    'while(init), condition=cond, body=body, backend_config={"known_trip_count":{"n":"50"}}',
)
BRANCHES = """HloModule branches

small {
  p = f32[8]{0} parameter(0)
  ROOT n = f32[8]{0} negate(p)
}

large {
  q = f32[8]{0} parameter(0)
  e = f32[8]{0} exponential(q)
  ROOT f = f32[8]{0} sine(e)
}

ENTRY main {
  c = pred[] parameter(0)
  x = f32[8]{0} parameter(1)
  ROOT r = f32[8]{0} conditional(c, x, x), true_computation=small, false_computation=large
}
"""
HOSTILE = FUSED.replace("jit(f)/norm", "jit(f)/a//../<img src=x>")


def launched(module: Module, *, timed: bool = False) -> LaunchedModule:
    device = device_of("gpu", "h100_sxm")[0] if timed else None
    account = KernelTimes(device, RELEASE).account(module) if device is not None else Account(module)
    return LaunchedModule(account, "gpu", {})


def graph_of(module: Module, **options: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    collection, data = map(json.loads, to_model_explorer(launched(module, **options)))
    (graph,) = collection["graphs"]
    return graph, data[graph["id"]]


def events_of(module: Module, **options: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(to_trace(launched(module, **options)))["traceEvents"]
    return found


def modules(samples: Path) -> list[Module]:
    texts = [parse_module(text) for text in (FUSED, LOOP, LOOP_OF_50, BRANCHES, HOSTILE)]
    device, _ = device_of("gpu", "h100_sxm")
    for name in ("gpu/gpt2_block", "cartpole/gpu/scan"):
        texts.append(compile(load(samples / name / "before.hlo"), "gpu", device=device).final)
    return texts


def test_the_forms_are_as_reviewed(hlofuse: Run, samples: Path, tmp_path: Path, golden: Golden) -> None:
    for target, arguments in (("cpu", ()), ("gpu", GPU)):
        for suffix in ("json", "trace.json"):
            file = tmp_path / f"softmax.{suffix}"
            assert (
                hlofuse("render", samples / target / "softmax/before.hlo", *arguments, "-o", file).status == 0
            )
            golden(f"render/softmax-{target}.{suffix}", readable(file))
        golden(f"render/softmax-{target}.node-data.json", readable(tmp_path / "softmax.node-data.json"))


def readable(file: Path) -> str:
    return json.dumps(json.loads(file.read_bytes()), indent=1, ensure_ascii=False) + "\n"


def test_a_graph_is_what_model_explorer_reads(samples: Path) -> None:
    """The fields of its `Graph`, `GraphNode`, `IncomingEdge`, `MetadataItem` and `GraphNodeData`."""
    for module in modules(samples):
        graph, data = graph_of(module)
        assert set(graph) == {"id", "nodes", "groupNodeAttributes"}
        ids = [node["id"] for node in graph["nodes"]]
        assert len(set(ids)) == len(ids)
        layers = set()
        for node in graph["nodes"]:
            assert set(node) == {"id", "label", "namespace", "incomingEdges", "attrs", "outputsMetadata"}
            parts = node["namespace"].split("/") if node["namespace"] else []
            assert all(parts)
            layers |= {"/".join(parts[:n]) for n in range(1, len(parts) + 1)}
            for edge in node["incomingEdges"]:
                assert set(edge) == {"sourceNodeId", "sourceNodeOutputId", "targetNodeInputId"}
                assert edge["sourceNodeId"] in ids
            for item in (*node["attrs"], *(a for o in node["outputsMetadata"] for a in o["attrs"])):
                assert set(item) == {"key", "value"}
                assert isinstance(item["value"], str)
        for layer, facts in graph["groupNodeAttributes"].items():
            assert layer in layers
            assert all(isinstance(value, str) for value in facts.values())
        assert set(data["results"]) <= set(ids)


def test_fusions_and_loops_are_layers_and_the_graph_has_no_cycle(samples: Path) -> None:
    graph, _ = graph_of(parse_module(FUSED))
    spaces = {node["id"]: node["namespace"] for node in graph["nodes"]}
    assert spaces["scale/safe"] == "fusion.1"
    assert spaces["main/p"] == ""
    edges = {node["id"]: [e["sourceNodeId"] for e in node["incomingEdges"]] for node in graph["nodes"]}
    assert edges["norm/square"] == ["main/p", "main/p"]
    assert edges["scale/safe"] == ["norm/total", "scale/wide_eps"]
    assert edges["main/dot"] == ["scale/scaled", "main/w"]
    graph, _ = graph_of(parse_module(LOOP_OF_50))
    spaces = {node["id"]: node["namespace"] for node in graph["nodes"]}
    assert spaces["body/twice"] == "loop (50 iterations)/body body"
    assert spaces["main/loop"] == "loop (50 iterations)"
    for module in modules(samples):
        waiting = {
            n["id"]: {e["sourceNodeId"] for e in n["incomingEdges"]} for n in graph_of(module)[0]["nodes"]
        }
        while waiting:
            ready = [key for key, sources in waiting.items() if not sources & waiting.keys()]
            assert ready
            for key in ready:
                del waiting[key]


def test_scopes_of_the_program_are_layers_above_fusions() -> None:
    text = FUSED.replace('op_name="jit(f)/norm/reduce_sum"', 'op_name="jit(f)/Net/norm/reduce_sum"')
    graph, _ = graph_of(parse_module(text))
    assert "Net/norm/fusion" in {node["namespace"] for node in graph["nodes"]}
    assert graph["groupNodeAttributes"]["Net/norm/fusion"]["source"] == "model.py:42"


@pytest.mark.parametrize("timed", [False, True])
def test_node_data_and_traces_add_up_to_the_account(*, timed: bool, samples: Path) -> None:
    for module in modules(samples):
        totals = launched(module, timed=timed).account.totals
        expected = totals.us if timed else totals.cost.bytes_accessed
        assert expected is not None
        _, data = graph_of(module, timed=timed)
        assert sum(r["value"] for r in data["results"].values()) == pytest.approx(expected, abs=1e-3)
        kernels = [e for e in events_of(module, timed=timed) if e["ph"] == "X" and e["tid"] == 1]
        length = sum(e["dur"] for e in kernels)
        assert length == pytest.approx(expected if timed else expected / 1e3, rel=1e-3)


@pytest.mark.parametrize("timed", [False, True])
def test_a_trace_is_in_the_trace_event_format(*, timed: bool, samples: Path) -> None:
    """Perfetto drops an event that overlaps another of its track by one nanosecond."""
    for module in modules(samples):
        events = events_of(module, timed=timed)
        assert {e["ph"] for e in events} == {"M", "X"}
        assert {e["name"] for e in events if e["ph"] == "M"} == {"process_name", "thread_name"}
        tracks = defaultdict(list)
        for e in events:
            assert isinstance(e["pid"], int)
            assert isinstance(e["tid"], int)
            if e["ph"] == "X":
                assert e["ts"] >= 0
                assert e["dur"] >= 0
                start, long = round(e["ts"] * 1e3, 1), round(e["dur"] * 1e3, 1)
                assert (start % 1, long % 1) == (0, 0)
                tracks[e["tid"]].append((start, start + long))
        for spans in tracks.values():  # events of a track are nested or apart
            around: list[float] = []
            for start, end in spans:
                while around and around[-1] <= start:
                    around.pop()
                assert not around or end <= around[-1]
                around.append(end)


def test_kernels_stand_in_order_with_their_arguments(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    file = tmp_path / "block.trace.json.gz"
    result = hlofuse("render", samples / "gpu/gpt2_block/before.hlo", *GPU, "-o", file)
    assert "open it at https://ui.perfetto.dev" in result.err
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    kernels = [e for e in events if e["ph"] == "X" and e["tid"] == 1]
    assert len(kernels) == 15
    found = next(e["args"] for e in kernels if e["name"] == "loop_multiply_fusion")
    assert found["name at fusion"] == "fusion.21"
    assert found["source"] == "programs.py:305"
    assert found["is lower bound"] is False
    assert found["bytes read"] > 0
    assert found["FLOP"] > 0
    assert not any(e["args"]["is lower bound"] for e in kernels)
    first = file.read_bytes()
    hlofuse("render", samples / "gpu/gpt2_block/before.hlo", *GPU, "-o", file)
    assert file.read_bytes() == first
    hlofuse("render", samples / "gpu/gpt2_block/before.hlo", "--device", "a100_sxm_80", "-o", file)
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    assert any(e["args"]["is lower bound"] for e in events if e["ph"] == "X" and e["tid"] == 1)


def test_a_loop_shows_its_first_iterations_and_counts_all() -> None:
    events = events_of(parse_module(LOOP_OF_50))
    names = [e["name"] for e in events if e["ph"] == "X"]
    assert names.count("twice") == MOST_ITERATIONS
    assert "… 40 more iterations" in names
    assert "loop ×50" in names
    text = LOOP.replace("next = s32[] add(", "next = s32[] multiply(")
    unknown = [e for e in events_of(parse_module(text)) if e["ph"] == "X"]
    assert [e["name"] for e in unknown].count("twice") == 1
    assert next(e["args"] for e in unknown if e["name"] == "loop") == {
        "trip count": "unknown: one iteration is counted"
    }


def test_of_a_conditional_the_slowest_branch_runs() -> None:
    names = {e["name"] for e in events_of(parse_module(BRANCHES), timed=True) if e["ph"] == "X"}
    assert {"e", "f"} <= names
    assert "n" not in names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--focus", "fusion"), "about pictures"),
        (("--view", "both"), "shows one module"),
        (("before.hlo",), "shows one module"),
        (("--format", "svg", "--profile", "a.xplane.pb"), "pictures have no times"),
    ],
)
def test_what_does_not_go_with_a_viewer(
    arguments: tuple[str, ...],
    message: str,
    hlofuse: Run,
    samples: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(samples / "cpu/softmax")
    result = hlofuse("render", "before.hlo", *arguments, "-o", tmp_path / "x.json")
    assert result.status == 2
    assert message in result.err
    assert not list(tmp_path.iterdir())


def test_the_format_comes_before_the_suffix_and_goes_to_standard_output(hlofuse: Run, samples: Path) -> None:
    source = samples / "cpu/softmax/before.hlo"
    trace = json.loads(hlofuse("render", source, "--format", "perfetto", "-o", "-").out)
    assert trace["traceEvents"]
    graph = json.loads(hlofuse("render", source, "--format", "model-explorer", "-o", "-").out)
    assert graph["label"] == "jit_softmax"
