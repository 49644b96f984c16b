"""Where an operation of a program on a framework comes from: its layer, both places in the source."""

from __future__ import annotations

from pathlib import Path

from hlofuse.compilation import compile
from hlofuse.ir import parse_module, replace
from hlofuse.reports.advice.catalogue import RECIPES
from hlofuse.reports.advice.written import prepared
from hlofuse.reports.common.model import Place
from hlofuse.reports.common.phrases import origin
from hlofuse.reports.explain.explain import explain
from hlofuse.reports.explain.phrases import sources
from hlofuse.reports.verdict.candidates import UNKNOWN, Rewritten, rewritten
from hlofuse.reports.whatif.model import Trial
from ..fixtures import companion_texts
from ..running import Run

TEXTS = companion_texts(__file__)

ROOT = Path(__file__).parents[2]

TEXT = TEXTS["text"]

TRAINED = """HloModule m
ENTRY e {{
  x = f32[64] parameter(0)
  n = f32[] constant(1.5)
  e = f32[64] broadcast(n), dimensions={{}}
  p = f32[64] power(x, e), metadata={{op_name="jvp()/pow" source_file="q.py" source_line=3}}
  ROOT d = f32[64] multiply(p, x), metadata={{op_name="{}/mul" source_file="q.py" source_line=3}}
}}"""


def test_a_line_in_an_installed_package_is_told_with_the_users_own() -> None:
    module = parse_module(TEXT)
    own, deep = (module.find(n) for n in ("own", "deep"))
    assert own is not None
    assert deep is not None
    assert str(module.source_of(own)) == "/home/me/net.py:7"
    assert module.called_from(own) is None
    assert str(module.source_of(deep)) == "keras/src/backend/jax/nn.py:35"
    assert str(module.called_from(deep)) == "/home/me/net.py:7"


def test_a_suggestion_names_the_users_own_line() -> None:
    own = Place("deep", source="keras/src/backend/jax/nn.py:35 relu", called_from="net.py:7 call")
    trial = Trial(None, "replayed", None, 0, 0, 0)
    module = parse_module(TEXT)
    assert Rewritten(RECIPES[0], module, module, (own, own)).suggestion(trial).sources == ("net.py:7 call",)


def test_a_slow_kernel_without_the_users_line_names_its_scopes() -> None:
    package = Place("dot", source="tf/framework/ops.py:1160", op_name="net/dense/MatMul", installed=True)
    assert package.where == "net/dense"
    assert replace(package, called_from="net.py:7 call").where == "net.py:7"
    assert replace(package, op_name=None).where == "tf/framework/ops.py:1160"
    assert replace(package, source=None, installed=False).where == "net/dense"
    assert replace(package, source="net.py:7 call", installed=False).where == "net.py:7"


def test_an_explanation_names_the_layer() -> None:
    explanation = explain(compile(parse_module(TEXT)))
    (group,) = explanation.passes[0].fused
    places = {s.producer.name: origin(s.producer) for s in group.steps}
    assert places == {
        "own": "net.py:7 call",
        "deep": "block_0/relu_1: keras/src/backend/jax/nn.py:35 relu, from net.py:7 call",
    }
    assert sources(group) == ("block_1, backward: keras/src/backend/jax/nn.py:35 relu, from net.py:7 call")


def test_like_kernels_of_other_layers_are_counted() -> None:
    explanation = explain(compile(parse_module(TEXT)))
    (group,) = explanation.passes[0].fused
    assert origin(group.fusion, 2).startswith("block_1, backward and 2 more of its kind: keras/")


def test_why_tells_it_as_well(hlofuse: Run, tmp_path: Path) -> None:
    dump = tmp_path / "before.hlo"
    dump.write_text(TEXT)
    reported = hlofuse("why", str(dump), "own", "deep", columns=200).out
    assert "block_0/relu_1: keras/src/backend/jax/nn.py:35 relu, from net.py:7 call" in reported


def test_a_change_that_leaves_the_gradient_of_its_line_says_so() -> None:
    found = {}
    for part in ("jvp()", "transpose(jvp())", "jvp()/pow/transpose(jvp())"):
        module = parse_module(TRAINED.format(part))
        found[part] = [r.suggestion(UNKNOWN).is_forward_alone for r in rewritten(prepared(module), "cpu")]
    assert [*found.values()] == [[False], [True], [False]]
