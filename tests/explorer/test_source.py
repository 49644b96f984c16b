"""The user's program on the page: only on request, only Python, coloured as the picture is."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlofuse.explorer.collect import SourceFiles
from hlofuse.explorer.model import SourceFile
from hlofuse.ir import parse_module
from ..running import Run
from .browser import Visit
from .conftest import Open

BLOCK = "gpu/gpt2_block"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs") / "project"
    folder.mkdir()
    lines = [f"line {n} <img src=x onerror='window.pwned=1'>" for n in range(1, 331)]
    (folder / "programs.py").write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.fixture
def shown(explored: Open, samples: Path, program: Path) -> Visit:
    return explored(samples / BLOCK, "--source", program, address="#tab=source")


def rows_of(seen: Visit) -> list[str]:
    seen.page.wait_for_selector(".program .row")
    numbers: list[str] = seen.page.evaluate(
        "[...document.querySelectorAll('.program .row:has(.marked) .number')].map((e) => e.textContent)"
    )
    return numbers


def test_the_program_is_text_with_times_and_stripes(shown: Visit) -> None:
    shown.page.evaluate("explorer.chooseLine('0:305')")
    row = shown.page.locator(".program .row", has_text="line 305 ")
    assert "10.79 µs" in row.inner_text()
    assert row.locator(".stripe").count() == 4
    assert shown.page.locator("img").count() == 0
    assert shown.page.evaluate("window.pwned") is None


def test_a_line_selects_its_kernels(shown: Visit) -> None:
    shown.page.evaluate("explorer.chooseLine('0:298')")
    shown.page.locator(".program .row", has_text="line 298 ").click()
    names = shown.page.evaluate(
        "[...document.querySelectorAll('#panes .group.marked')].map((g) => g.ariaLabel)"
    )
    assert len(names) == 4
    assert all("gemm_fusion_dot:" in n or "loop_transpose_fusion" in n for n in names)
    assert shown.page.inner_text("#details h2").startswith("programs.py:298")
    assert shown.page.locator("#details .values button").count() == 4
    assert "line=0%3A298" in shown.page.evaluate("location.hash")
    assert rows_of(shown) == ["298"]


# By name of each source line that the search lists: the kernels with an operation of it, and those marked.
LINES = """() => explorer.search.names().filter((e) => e.what.startsWith("source line")).map((entry) => {
    const { run } = explorer, kernels = new Set(run.kernels.filter((k) => k.source === entry.name));
    for (const { kernels: all } of run.regions)
        for (const { box, inside } of all)
            if (inside.some((op) => run.ops.source[op] === entry.name)) kernels.add(run.kernelAt.get(box));
    explorer.change({ view: "film" });
    explorer.search.take(entry);
    const marked = document.querySelectorAll("#panes .marked").length;
    return [entry.name, kernels.size, marked, explorer.view.tab, details.innerText];
})"""


def test_each_source_line_found_selects_its_kernels(explored: Open, samples: Path) -> None:
    page = explored(samples / BLOCK).page
    page.evaluate("explorer.run.ops.source.fill('lib.py:7 f', 0, 90)")  # called from several lines
    for name, kernels, marked, tab, details in page.evaluate(LINES):
        assert (tab, details[: len(name)]) == ("", name)
        assert marked >= min(kernels, 12), name  # the picture opens so many, the details list all


def test_a_kernel_marks_its_lines(shown: Visit) -> None:
    shown.page.evaluate("explorer.showBox(explorer.run.boxOf('loop_add_fusion'))")
    assert rows_of(shown) == ["304", "305"]
    shown.page.click("#details dd button[title='The kernels of this line']")
    assert shown.page.inner_text("#details h2").startswith("programs.py:305")


def test_a_stripe_has_the_colour_of_the_kernel_in_the_picture(shown: Visit) -> None:
    shown.page.click("#views [data-key=steps]")
    shown.page.evaluate("explorer.showBox(explorer.run.boxOf('loop_add_fusion'))")
    shown.page.wait_for_selector(".program .stripe")
    hull = shown.page.locator("#panes .hull", has_text="loop_add_fusion").locator(".body:not(.band)")
    stripes = shown.page.locator(".program .row", has_text="line 305 ").locator(".stripe")
    names = str(stripes.first.locator("..").get_attribute("title")).split(", ")
    stripe = stripes.nth(names.index("loop_add_fusion"))
    line = "(e) => getComputedStyle(e).getPropertyValue('--line')"
    assert stripe.evaluate(line) == hull.evaluate(line)
    assert stripe.evaluate(line) != stripes.nth(1 - names.index("loop_add_fusion")).evaluate(line)
    shown.page.select_option("#colour", "time")
    assert stripe.evaluate(line) == hull.evaluate(line)


def test_without_the_option_there_is_no_text(explored: Open, samples: Path) -> None:
    seen = explored(samples / BLOCK, address="#tab=source")
    assert "--source auto" in seen.page.inner_text("#panel .note")
    row = seen.page.locator("#panel .row").first
    assert row.locator(".first").inner_text() == "programs.py:305 _block"
    assert row.locator(".worth").inner_text() == "10.79 µs"
    row.click()
    assert seen.page.inner_text("#details h2") == "programs.py:305 _block"


NAMED = """HloModule m

FileNames
1 "{0}"

FunctionNames
1 "f"

FileLocations
1 {{file_name_id=1 function_name_id=1 line=1 end_line=1 column=1 end_column=2}}

StackFrames
1 {{file_location_id=1 parent_frame_id=1}}

ENTRY e {{
  p = f32[8]{{0}} parameter(0)
  ROOT n = f32[8]{{0}} negate(p), metadata={{op_name="n" stack_frame_id=1}}
}}
"""


def embedded(file: Path, folder: Path | str | None) -> SourceFile:
    module = parse_module(NAMED.format(file))
    files = SourceFiles(None if folder is None else str(folder))
    root = module.entry.root
    assert files.line(root, module) == (0, 1)
    (found,) = files.embedded(None)
    return found


def test_a_file_is_found_below_the_folder_and_by_its_path(program: Path) -> None:
    assert embedded(Path("/elsewhere/project/programs.py"), program.parent).text.startswith("line 1 ")
    assert embedded(program / "programs.py", "auto").text.startswith("line 1 ")
    assert embedded(program / "programs.py", None).text == ""


@pytest.mark.parametrize("name", ["secret", ".ssh/id_rsa", "notes.txt"])
def test_a_dump_cannot_name_a_file_that_is_no_program(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("secret")
    assert embedded(file, tmp_path).text == ""
    assert "not found" in embedded(file, "auto").note


def test_a_file_that_is_too_large_or_no_text_says_so(tmp_path: Path) -> None:
    large, binary = tmp_path / "large.py", tmp_path / "binary.py"
    large.write_text("x = 1\n" * 100_000)
    binary.write_bytes(b"\xff\xfe\x00")
    assert embedded(large, tmp_path).note == "not embedded: 600 kB"
    assert embedded(binary, tmp_path).note.startswith("not readable")


def test_a_folder_that_is_not_there_is_one_sentence(hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.html"
    result = hlofuse("explore", samples / BLOCK, "--source", tmp_path / "none", "-o", out)
    assert result.status == 2
    assert "is no folder" in result.err
    assert not out.exists()


def test_scopes_are_the_functions_of_the_program_and_the_verdict_has_their_shares(
    explored: Open, samples: Path
) -> None:
    seen = explored(samples / "cartpole/cpu/scan/before.hlo", address="#view=scope")
    names = {str(t) for t in seen.page.locator("#panes .name").all_text_contents()}
    assert any("separate_step" in name for name in names)
    assert not any("jvp" in name or "jit(" in name for name in names)
    assert "separate_step" in seen.page.inner_text("table.functions")
    seen.page.click("table.functions button")
    assert seen.page.locator("#panes .hit").count() >= 1
    assert "Memory:" in seen.details
