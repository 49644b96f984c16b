"""A notebook, run from its first cell to its last as Jupyter runs it."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import pytest

from ..conftest import ROOT

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


@pytest.fixture(scope="module")
def run() -> Any:
    """The notebook with the outputs of its cells."""
    if importlib.util.find_spec("jax") is None:
        pytest.skip("the notebook compiles with JAX")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    client = nbclient.NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOK.parent)}}
    )
    return client.execute(env={**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "cpu"})


def outputs(run: Any, start: str) -> list[Any]:
    """The outputs of the cell that begins so."""
    return next(c.outputs for c in run.cells if c.cell_type == "code" and c.source.startswith(start))


def test_every_cell_runs_and_what_it_shows_is_short(run: Any) -> None:
    for cell in run.cells:
        for output in cell.get("outputs", ()):
            assert output.output_type != "error", output
            data = output.get("data", {})
            assert len(data.get("text/plain", "")) < 2000
            assert len(html := data.get("text/html", "")) < 20_000 or "<svg" in html


def test_a_report_is_html_and_a_picture_is_a_picture(run: Any) -> None:
    assert "15 kernels" in outputs(run, "report")[0].data["text/html"]
    assert "<svg" in outputs(run, "report.render")[0].data["text/html"]


def test_a_function_of_the_notebook_is_compiled_and_explained(run: Any) -> None:
    assert "jit_scores" in outputs(run, "hlofuse.open(scores")[0].data["text/html"]
