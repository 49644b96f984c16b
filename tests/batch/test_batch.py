"""`hlofuse batch`: what it writes, and that nothing is lost, doubled or stalled."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from hlofuse.batch.sources import document, items
from hlofuse.batch.store import opened
from hlofuse.library.opening import open as report_on
from ..conftest import ROOT
from ..fixtures import unpacked
from ..running import Run

BATCH = (sys.executable, "-m", "hlofuse", "batch")
TABLES = ("modules", "kernels", "edges", "suggestions")
"""Those that are the same whoever wrote them; `work` has seconds."""

TEXT = """HloModule jit_f, entry_computation_layout={(f32[64,64]{1,0})->f32[64]{0}}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (p: f32[64,64]) -> f32[64] {
  %p = f32[64,64]{1,0} parameter(0)
  %e = f32[64,64]{1,0} exponential(%p)
  %z = f32[] constant(0)
  ROOT %r = f32[64]{0} reduce(%e, %z), dimensions={1}, to_apply=%add
}
"""


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`dumps`, seven programs, two of them in one dump directory, one twice; `finished`, a run over them."""
    samples = ROOT / "samples"
    root = tmp_path_factory.mktemp("batch")
    folder = root / "dumps"
    for backend in ("cpu", "gpu"):
        shutil.copytree(samples / backend, folder / backend)
    shutil.copytree(samples / "cpu" / "softmax", folder / "again" / "softmax")
    shutil.copy(samples / "cpu" / "hlofuse.json", folder / "again")
    directory = folder / "directory"
    directory.mkdir()
    for number, name in enumerate(("jit_f", "jit_g")):
        text = TEXT.replace("jit_f", name).replace("64", str(32 << number))
        (directory / f"module_{number:04d}.{name}.before_optimizations.txt").write_text(text)
    subprocess.run(
        [*BATCH, folder, "-o", root / "finished", "--workers", "2"], check=True, capture_output=True
    )
    return root


@pytest.fixture
def dumps(first: Path) -> Path:
    """The programs of `first`, as they are."""
    return first / "dumps"


@pytest.fixture
def changing(first: Path, tmp_path: Path) -> Path:
    """The programs of `first`, to be changed."""
    return Path(shutil.copytree(first / "dumps", tmp_path / "dumps"))


@pytest.fixture
def finished(first: Path, tmp_path: Path) -> Path:
    """The run of `first`, to be gone on with."""
    return Path(shutil.copytree(first / "finished", tmp_path / "finished"))


def table(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query over a run."""
    return opened(folder).execute(query).fetchall()


def contents(folder: Path) -> list[bytes]:
    """The tables as bytes."""
    return [(folder / f"{name}.parquet").read_bytes() for name in TABLES]


def test_figures_are_those_of_a_report_on_each_module(finished: Path, dumps: Path) -> None:
    rows = table(
        finished, "SELECT source, kernels, bytes, time_us, best_us_saved FROM modules WHERE path LIKE '_pu/%'"
    )
    assert len(rows) == 4
    for source, kernels, moved, time_us, gain in rows:
        report = report_on(source)
        document = report.explain().to_json()
        totals = document["totals"]
        assert (kernels, moved, time_us) == (totals["kernels"], totals["bytes"], totals["time_us"])
        own = [s["tried"]["us_saved"] for s in document["suggestions"] if s["kind"] != "report"]
        assert gain == (own[0] if own else None)  # a limitation of XLA is none of the user's gains
        listed = table(
            finished, f"SELECT count(*) FROM modules JOIN kernels USING (key) WHERE source = '{source}'"
        )
        assert listed == [(len(report.kernels),)]


def test_every_module_is_a_row_and_equal_ones_are_worked_out_once(finished: Path) -> None:
    assert table(finished, "SELECT count(*), count(DISTINCT key), count(error) FROM modules") == [(7, 6, 0)]
    assert table(finished, "SELECT module FROM modules WHERE path = 'directory'") == [("jit_f",), ("jit_g",)]
    assert table(finished, "SELECT count(*) FROM work") == [(6,)]
    assert table(
        finished, "SELECT xla_result_kernels = xla_result_same FROM modules WHERE path = 'gpu/gpt2_block'"
    ) == [(True,)]


def test_edges_and_kernels_name_lines_of_the_program(finished: Path) -> None:
    rows = table(
        finished, "SELECT rule, file, line FROM modules JOIN edges USING (key) WHERE path = 'gpu/gpt2_block'"
    )
    assert ("PF002", "programs.py", 298) in rows
    names = table(finished, "SELECT name FROM modules JOIN kernels USING (key) WHERE path = 'gpu/softmax'")
    assert names == [("triton_softmax.2",)]


def test_measured_times_and_modules_of_a_tpu(hlofuse: Run, tmp_path: Path) -> None:
    """A profile with modules in it; one next to a dump, which is no module of its own; a TPU's module."""
    pytest.importorskip("jaxlib", reason="needs jaxlib")
    source, out = tmp_path / "source", tmp_path / "out"
    unpacked(ROOT / "tests" / "data" / "profiles.tar.xz", source)
    unpacked(ROOT / "tests" / "data" / "tpu.tar.xz", source)
    measured = source / "dump" / "profile"
    measured.mkdir(parents=True)
    shutil.copy(source / "host.xplane.pb", measured)
    dump = source / "dump" / "module_0018.jit_step.before_optimizations.txt"
    shutil.copy(source / "step.before_optimizations.txt", dump)
    for name in ("softmax", "gpt2_block"):
        (source / "tpu" / f"{name}.txt").write_bytes((source / "tpu" / name / "after.hlo").read_bytes())
    assert hlofuse("batch", source, "-o", out, "--no-suggestions").status == 0
    read = "FROM modules WHERE error IS NULL ORDER BY path, module"
    found = table(out, f"SELECT path, module, backend, measured_us > 0 {read}")
    assert found == [
        ("dump", "jit_step", "cpu", True),
        ("host.xplane.pb", "jit_block(22)", "cpu", True),
        ("host.xplane.pb", "jit_small(20)", "cpu", True),
        ("host.xplane.pb", "jit_step(18)", "cpu", True),
        ("step.before_optimizations.txt", "jit_step", "cpu", None),
        *(
            (f"tpu/{name}{suffix}", f"jit_{name}", "tpu", None)
            for name in ("gpt2_block", "softmax")
            for suffix in ("", ".txt")
        ),
    ]
    measured_kernels = "FROM modules m JOIN kernels k USING (key, module) WHERE k.measured_us > 0"
    assert table(out, f"SELECT count(DISTINCT (path, module)) {measured_kernels}") == [(4,)]


@pytest.mark.parametrize("form", ["zip", "tar.gz", "list"])
def test_archives_and_lists_hold_what_folders_hold(
    hlofuse: Run, finished: Path, dumps: Path, tmp_path: Path, form: str
) -> None:
    source = tmp_path / f"dumps.{form}"
    files = sorted(p for p in dumps.rglob("*") if p.is_file())
    if form == "zip":
        with zipfile.ZipFile(source, "w") as archive:
            for file in files:
                archive.write(file, file.relative_to(dumps))
    elif form == "tar.gz":
        with tarfile.open(source, "w:gz") as tar:
            tar.add(dumps, ".")
    else:
        source.write_text(f"# of last night\n{dumps}\n")
        source = Path(f"@{source}")
    out = tmp_path / "other"
    result = hlofuse("batch", source, "-o", out)
    assert result.status == 0, result.err
    query = "SELECT path, module, kernels, bytes, time_us, xla_result_same FROM modules ORDER BY ALL"
    assert table(out, query) == table(finished, query)


def test_tables_do_not_depend_on_the_parts_of_a_run(
    hlofuse: Run, dumps: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hlofuse.batch.store._ROWS", 1)
    assert hlofuse("batch", dumps, "-o", tmp_path / "parts", "--workers", 1).status == 0
    assert len(list((tmp_path / "parts").rglob("*-modules.parquet"))) == 6
    assert contents(tmp_path / "parts") == contents(finished)


def test_a_killed_run_goes_on(dumps: Path, finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    command = [*BATCH, str(dumps), "-o", str(out), "--workers", "2"]
    for seconds in (0.4, 1.2, 1.8):
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        child.wait()
    subprocess.run(command, check=True, capture_output=True)
    assert contents(out) == contents(finished)


def test_what_is_finished_is_not_worked_out_again(hlofuse: Run, changing: Path, finished: Path) -> None:
    keys = "SELECT key, kernels, time_us FROM modules ORDER BY ALL"
    before = table(finished, keys)
    assert "worked on 0 of 7" in hlofuse("batch", changing, "-o", finished).err
    assert table(finished, keys) == before
    changed = changing / "directory" / "module_0000.jit_f.before_optimizations.txt"
    changed.write_text(changed.read_text().replace("exponential", "tanh"))
    assert "worked on 1 of 7" in hlofuse("batch", changing, "-o", finished).err
    assert table(finished, "SELECT count(*) FROM modules") == [(7,)]
    assert "worked on 6 of 7" in hlofuse("batch", changing, "-o", finished, "--no-suggestions").err


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Files that are wrong in many ways, next to one that is right."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.hlo", TEXT + "\n" * (64 << 20))
    files = {
        "right.hlo": TEXT.encode(),
        "cut.hlo": TEXT[:130].encode(),
        "empty.hlo": b"",
        "binary.hlo": bytes(range(256)) * 8,
        "deep.hlo": b"HloModule m\nENTRY e {\n ROOT p = " + b"(" * 60_000 + b"f32[] parameter(0)\n}\n",
        "cut.hlo.gz": gzip.compress(TEXT.encode())[:-9],
        "bomb.hlo.gz": gzip.compress(b"\n" * (64 << 20)),
        "bomb.zip": whole.getvalue(),
        "broken.tar.gz": b"no archive",
        "broken.xplane.pb": b"\xff" * 99,
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    os.symlink(folder / "nowhere", folder / "link.hlo")
    return folder


def test_bad_files_are_rows_with_their_error(hlofuse: Run, hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = hlofuse(
        "batch", hostile, "-o", out, "--max-memory", "1GiB", HLOFUSE_MAX_INPUT_BYTES=str(32 << 20)
    )
    assert result.status == 0, result.err
    found = dict(table(out, "SELECT path, coalesce(error, '') FROM modules"))
    assert len(found) == 11
    assert found.pop("right.hlo") == ""
    assert all(found.values()), found
    assert found["empty.hlo"] == "it is empty"
    assert "over 33,554,432 bytes" in found["bomb.hlo"]
    kinds = table(out, "SELECT DISTINCT error_kind FROM modules WHERE error IS NOT NULL")
    assert kinds == [("input",)]
    assert not any("/" in error for error in found.values())  # of the same kind, the same words


def test_a_module_over_the_limit_of_time_is_a_row(hlofuse: Run, tmp_path: Path) -> None:
    many = "".join(f"  %a{n} = f32[64,64]{{1,0}} add(%p, %p)\n" for n in range(200_000))
    (tmp_path / "monster.hlo").write_text(TEXT.replace("  %z", many + "  %z"))
    result = hlofuse("batch", tmp_path / "monster.hlo", "-o", tmp_path / "out", "--max-seconds", 1)
    assert result.status == 0, result.err
    ((error, kind),) = table(tmp_path / "out", "SELECT error, error_kind FROM modules")
    assert (kind, bool(error), "/" in error) == ("limit", True, False)


def test_two_runs_are_compared_as_by_check(hlofuse: Run, dumps: Path, finished: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert hlofuse("batch", "diff", finished, finished).status == 0
    hlofuse("batch", dumps, "-o", other, "--disable", "CPU007")
    fewer = hlofuse("batch", "diff", finished, other, columns=120)
    assert fewer.status == 0
    assert "4 of 7 modules are the same" in fewer.out
    more = hlofuse("batch", "diff", other, finished, "--format", "json")
    assert more.status == 1
    worst = json.loads(more.out)["modules"][0]
    assert worst["failed"]
    assert any(finding["code"] == "fusion-split" for finding in worst["findings"])


def test_a_module_that_cannot_be_read_any_more_fails(
    hlofuse: Run, changing: Path, finished: Path, tmp_path: Path
) -> None:
    (changing / "directory" / "module_0001.jit_g.before_optimizations.txt").write_text("")
    shutil.copytree(finished, tmp_path / "other")
    assert "worked on 1 of 7" in hlofuse("batch", changing, "-o", tmp_path / "other").err
    result = hlofuse("batch", "diff", finished, tmp_path / "other", columns=120)
    assert result.status == 1
    assert "1 of 1 module failed" in result.out
    assert "directory jit_g: not read: module_0001.jit_g.before_optimizations.txt is empty" in result.out


def test_the_index_leads_to_the_page_of_each_module(hlofuse: Run, browser: Browser, tmp_path: Path) -> None:
    source, out = tmp_path / "<b>&", tmp_path / "out"
    source.mkdir()
    for name, size in (("small", 64), ("large", 4096), ("large_again", 4096)):
        (source / f"{name}.hlo").write_text(TEXT.replace("64", str(size)))
    (source / "broken.hlo").write_text("HloModule <i>m</i>")
    for _ in range(2):  # the second run works on nothing, and leaves the pages
        assert hlofuse("batch", source, "-o", out, "--pages", "--no-suggestions").status == 0
    (total,) = table(out, "SELECT count(*), sum(kernels) FROM modules")
    page = browser.new_page()
    page.goto((out / "index.html").as_uri())
    assert page.locator("dd").all_inner_texts()[0] == str(total[0])
    assert page.locator("dl div", has_text="launches").locator("dd").inner_text() == str(total[1])
    rows = [row.locator("td").first for row in page.locator("tbody tr").all()]
    assert [row.inner_text() for row in rows] == ["large.hlo", "large_again.hlo", "small.hlo", "broken.hlo"]
    assert [row.locator("a").count() for row in rows] == [1, 1, 1, 0]
    assert page.locator("i").count() == 0  # the text of a file is no markup
    rows[0].locator("a").click()
    page.wait_for_selector("html[data-ready]")
    assert "jit_f" in page.locator("#title").inner_text()
    page.get_by_text("All modules").click()
    assert page.locator("tbody tr").count() == 4
    page.close()


def test_queries(hlofuse: Run, finished: Path) -> None:
    result = hlofuse("batch", "query", finished, "SELECT path, kernels FROM modules", "--format", "json")
    rows = json.loads(result.out)["sections"]["query"]
    assert {"path": "gpu/softmax", "kernels": 1} in rows
    dates = hlofuse("batch", "query", finished, "SELECT DATE '2026-11-26' AS day", "--format", "json")
    assert json.loads(dates.out)["sections"]["query"] == [{"day": "2026-11-26"}]
    wrong = hlofuse("batch", "query", finished, "SELECT nothing FROM modules")
    assert wrong.status == 2
    assert wrong.err.startswith("error: query: Binder Error")
    assert hlofuse("batch", "query", finished.parent, "SELECT 1").status == 2
    trend = hlofuse("batch", "trend", finished, finished)
    assert [line.split()[1] for line in trend.out.splitlines()[2:4]] == ["7", "7"]


def test_wrong_calls_are_refused(hlofuse: Run, dumps: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for sources in ([empty], [tmp_path / "missing"], [f"@{tmp_path / 'missing'}"], ["nowhere://bucket"]):
        result = hlofuse("batch", *sources, "-o", tmp_path / "out")
        assert result.status == 2
        assert result.err.startswith("error: ")
    for options in (("--target", "none"), ("--device", "none"), ("--xla", "99")):
        assert hlofuse("batch", dumps, "-o", tmp_path / "out", *options).status == 2
    assert not (tmp_path / "out").exists()
    assert "is in a store" in hlofuse("batch", dumps, "-o", "s3://bucket/out").err
    (tmp_path / "file").touch()
    result = hlofuse("batch", dumps, "-o", tmp_path / "file" / "out")
    assert result.status == 2
    assert "file is not a directory" in result.err


def test_units_are_found_by_names_alone(dumps: Path) -> None:
    assert [item.path for item in items([str(dumps)])] == [
        "again/softmax",
        "cpu/gpt2_block",
        "cpu/softmax",
        "directory",
        "directory",
        "gpu/gpt2_block",
        "gpu/softmax",
    ]


def test_every_column_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "fleets.md").read_text()
    for name, columns in document("schema")["tables"].items():
        assert f"`{name}.parquet`" in page
        missing = [column for column in columns if f"`{column}`" not in page]
        assert not missing, (name, missing)
