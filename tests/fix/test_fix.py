"""`hlofuse fix`: forms that are found under any name, edits that are proved, files that stay as they are."""

from __future__ import annotations

import ast
import json
import re
import shutil
from pathlib import Path

import pytest

from hlofuse.reports.advice.catalogue import RECIPES
from hlofuse.reports.common.edits import Edit, edits
from hlofuse.reports.common.recipe_page import recipe_names, recipe_text
from ..running import Run

HEAD = "import jax\nimport jax.numpy as jnp\nfrom jax import lax\n\n\n"


def only(body: str, head: str = HEAD) -> Edit:
    text = head + body
    (found,) = (e for e in edits(text, range(len(text))) if e.recipe != "sort-as-integers")
    return found


def written(body: str, head: str = HEAD) -> str:
    return only(body, head).texts[0].removeprefix(head)


def test_the_table_names_recipes_and_has_programs() -> None:
    rows = re.findall(
        r"^\| (?:\[(.+?)\]\(\1\.md\)|–) \| (`.+`) \| (`.+`) \|$", recipe_text("FIXES"), re.MULTILINE
    )
    assert len({recipe for recipe, *_ in rows} & set(recipe_names())) >= 20
    assert {recipe for recipe, *_ in rows} <= {*recipe_names(), ""}
    for row in rows:
        for code in re.findall("`(.+?)`", " ".join(row[1:])):
            ast.parse(code)


def test_the_first_form_is_the_one_that_the_suggestion_names() -> None:
    found = only("def f(t, x):\n    return jnp.searchsorted(t, x)\n")
    assert 'method="scan_unrolled"' in found.texts[0]
    assert 'Pass method="scan_unrolled"' in {r.text.partition(" to ")[0] for r in RECIPES}


LABEL = """def f(i, p):
    hot = jax.nn.one_hot(i, 9)
    return (hot * p).sum(axis=-1)  # kept
"""
PICKED = """def f(i, p):
    return jnp.where(p, i)  # kept
""".replace(
    "where(p, i)",
    'where(i < 0, 0, jnp.take_along_axis(p, i[..., None], -1, mode="fill", fill_value=0)[..., 0])',
)
ATTENTION = """def f(q, k, v):
    s = jnp.einsum("abcd,aecd->acbe", q, k) * 0.1
    s = jnp.where(m, s, -1e9)
    w = jax.nn.softmax(s).astype(v.dtype)
    return jnp.einsum("acbe,aecd->abcd", w, v)
"""
CALLED = """def f(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, mask=m, scale=0.1, implementation="cudnn")
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = jnp.sort(f(x), axis=-1)[..., 0]\n", "y = jnp.nanmin(f(x), -1)\n"),
        ("y = 2 + x.mean(-1)\n", "y = 2 + jnp.sum(x * (1 / x.shape[-1]), -1)\n"),
        ("y = (a + b) @ jnp.diag(d) - c\n", "y = ((a + b) * d) - c\n"),
        ("y = -(a ** 1.5)\n", "y = -(a * jnp.sqrt(a))\n"),
        ("y = a @ b @ (c + d)\n", "y = a @ (b @ (c + d))\n"),
        ("y = lax.cond(p, f, g, x)\n", "y = jnp.where(p, f(x), g(x))\n"),
        ("y = jnp.dot(jnp.linalg.inv(a), b)\n", "y = jnp.linalg.solve(a, b)\n"),
        ("y = jnp.matmul(a, b).dot(c)\n", "y = a @ (b @ c)\n"),
        ("y = jnp.trace(jnp.einsum('ij,jk->ik', a, b))\n", "y = jnp.sum(a * b.T)\n"),
        ("y = lax.cond(p, lambda: a, lambda: -b)\n", "y = jnp.where(p, a, -b)\n"),
        ("y = jnp.argsort(x)[::-1][:k]\n", "y = x.shape[-1] - 1 - lax.top_k(x[::-1], k)[1]\n"),
        ("v, i = lax.top_k(x, k)\n", "v, i = lax.optimization_barrier(lax.top_k(x, k))\n"),
        ("def f(v):\n  d = jnp.diag(v)\n  d.T @ d\n", "def f(v):\n  d = jnp.diag(v)\n  d.T * v\n"),
        (
            "y = 1 + jnp.roll(x, axis=0, shift=-1)\n",
            "y = 1 + (jnp.pad(x[1:], ((0, 1), (0, 0))) + jnp.pad(x[:1], ((x.shape[0] - 1, 0), (0, 0))))\n",
        ),
        (
            "y = jnp.sum(jnp.square(a[:, None] - b[None]), axis=-1)\n",
            "y = jnp.maximum(jnp.sum(a * a, 1)[:, None] - 2 * a @ b.T + jnp.sum(b * b, 1), 0)\n",
        ),
        (
            "y = jnp.dot(jax.nn.one_hot(i, num_classes=n, dtype=t.dtype), t)\n",
            'y = t.at[i].get(mode="fill", fill_value=0, wrap_negative_indices=False)\n',
        ),
        (LABEL, PICKED),
        (ATTENTION, CALLED),
    ],
)
def test_a_form_is_replaced_and_all_else_kept(before: str, after: str) -> None:
    assert written(before) == after


def test_a_form_is_found_however_it_is_written() -> None:
    for transposed in ("k.mT", "k.transpose(0, 1, 3, 2)", "jnp.swapaxes(k, -1, -2)"):
        assert "scale=1 / s" in written(f"y = jax.nn.softmax(q @ {transposed} / s, axis=-1) @ v\n")
    assert "t.at[i].get" in written("y = (i[:, jnp.newaxis] == jnp.arange(n)).astype(d) @ t\n")


def test_names_are_those_of_the_program() -> None:
    """A module that has none is imported, and what has a name keeps it."""
    head = "import jax.numpy as np\nfrom jax.lax import scan as go\n"
    text = head + "y = np.cumsum(x, 0)\n"
    found = {e.recipe: e.texts[0].removeprefix(head) for e in edits(text, [3])}
    loop = "lambda total, row: (total + row,) * 2, np.zeros_like(x[0]), x"
    assert found == {
        "triangular-cumsum": "y = np.tril(np.ones((x.shape[0],) * 2, x.dtype)) @ x\n",
        "scan-not-cumsum": f"import jax\ny = jax.lax.scan({loop})[1]\n",
    }
    unrolled = only("y = go(f, 0, xs)\n", head).texts[0]
    assert unrolled == f"{head}import jax\ny = jax.lax.scan(f, 0, xs, unroll=2)\n"


@pytest.mark.parametrize(
    "body",
    [
        "y = numpy.sort(x)[..., 0]\n",
        "y = jnp.sort(x)[..., 1]\n",
        "y = lax.scan(f, 0, xs, unroll=2)\n",
        "y = f(x).mean(-1)\n",  # it would be written twice
        "y = jnp.dot(jnp.linalg.inv(a), b, precision='high')\n",
        "hot = one_hot(i, 9)\nif p:\n    hot = 2\ny = jnp.sum(hot * p, -1)\n",
    ],
)
def test_other_programs_have_no_edit(body: str) -> None:
    text = HEAD + body
    assert {e.recipe for e in edits(text, range(len(text)))} <= {"sort-as-integers"}


def test_what_a_form_calls_is_written_too() -> None:
    head = HEAD + "y = jnp.sort(x)\n"
    (found,) = edits(head, [HEAD.count("\n") + 1])
    assert found.texts[0].count("def ") == 2
    assert found.texts[0].endswith("y = floats(jnp.sort(integers(x)))\n")


def test_all_places_at_once_and_each(tmp_path: Path) -> None:
    text = HEAD + "y = jnp.roll(x, 1, 1) - jnp.roll(x, -1, axis=1)\n"
    whole, first, second = edits(text, [6])
    assert whole.texts[0].count("side_by_side(x") == 2
    assert {first.places, second.places} == {(place,) for place in whole.places}
    assert whole.texts[0].count("def side_by_side") == 1
    assert list(edits(text, [5])) == [], "no operation is on these lines"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return Path(shutil.copy(Path(__file__).with_name("programs.py"), tmp_path))


def test_edits_are_proved_and_written_on_request(hlofuse: Run, program: Path) -> None:
    """Four of the forms; values, comments and other lines stay."""
    pytest.importorskip("jax", reason="needs jax")
    before = program.read_text()
    call = ("fix", f"{program}:several", "--args-from", "arguments")
    found = json.loads(hlofuse(*call, "--format", "json", "--write").out)
    assert {"take-not-onehot", "max-not-sort"} <= {f["recipe"] for f in found["fixes"]}
    assert all(f["proof"][-2:] == ["compiled by XLA", "values equal"] for f in found["fixes"])
    after = program.read_text()
    assert after == found["text"] != before
    assert 'mode="fill", fill_value=0, wrap_negative_indices=False)  # kept\n' in after
    shown = hlofuse(*call, "--tries", 1)
    assert shown.status == 0
    assert program.read_text() == after, "nothing is written without --write"


def test_nothing_to_gain_and_wrong_calls(hlofuse: Run, program: Path) -> None:
    pytest.importorskip("jax", reason="needs jax")
    before = program.read_text()
    assert (
        "No edit is proved to help" in hlofuse("fix", f"{program}:nothing", "--args", "f32[8]", "--write").out
    )
    for call, message in [
        ((f"{program}",), "expected PROGRAM.py:FUNCTION"),
        ((f"{program}:absent",), "has no absent"),
        ((f"{program}:nothing", "--args", "f32[8]", "--measure", "--device", "h100_sxm"), "--measure"),
    ]:
        result = hlofuse("fix", *call)
        assert (result.status, message in result.err) == (2, True)
    program.write_text("def f(:\n")
    assert hlofuse("fix", f"{program}:f").status == 2
    assert before != program.read_text() == "def f(:\n"
