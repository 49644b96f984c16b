"""Directories in which a narrow `--xla_dump_hlo_pass_re` left out passes that changed the module."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from hlofuse.inputs.dump_directory import read_name
from hlofuse.ir.errors import HlofuseError
from hlofuse.pipelines import passes_of
from hlofuse.releases import AROUND_FUSION as RELEASE
from hlofuse.reports.verify import find_cases, verify
from hlofuse.reports.verify.model import Report
from ..inputs.dump_directories import PIPELINE
from ..running import Run


def narrow(full: Path, folder: Path, pattern: str) -> Path:
    """The dumps that XLA would have written: the pass before or the pass after matches."""
    for path in full.iterdir():
        name = read_name(path)
        passes = (name.after, name.before) if name is not None else ()
        if not any(passes) or any(p and re.search(pattern, p) for p in passes):
            shutil.copy(path, folder)
    return folder


def verified(folder: Path) -> Report:
    cases, skipped = find_cases(folder, target="gpu")
    return verify(cases, target="gpu", device="h100_sxm", skipped=skipped)


@pytest.mark.parametrize(
    ("pattern", "compared", "not_dumped"),
    [
        (".*", [name.split("(")[0] for name in passes_of("gpu", RELEASE)], ()),
        ("fusion|variadic-op-splitter", ["priority-fusion", "dce"], ("cse",)),
        ("priority-fusion|variadic-op-splitter", ["priority-fusion"], ("cse", "dce")),
        ("variadic-op-splitter|^cse$", ["priority-fusion", "cse"], ("dce",)),
        ("variadic-op-splitter|rename_fusions", [], ("priority-fusion", "cse", "dce")),
    ],
)
def test_only_what_was_dumped_is_compared(
    gpt2_whole: Path, tmp_path: Path, pattern: str, compared: list[str], not_dumped: tuple[str, ...]
) -> None:
    report = verified(narrow(gpt2_whole, tmp_path, pattern))
    assert report.agrees
    (verdict,) = report.verdicts
    assert ([p.name for p in verdict.passes], verdict.not_dumped) == (compared, not_dumped)


@pytest.mark.parametrize(
    "changed", ["after_priority-fusion", "post-fusion_optimization.after_pipeline-start"]
)
def test_a_difference_shows_at_the_dumps_that_are_there(
    gpt2_whole: Path, tmp_path: Path, changed: str
) -> None:
    narrow(gpt2_whole, tmp_path, "fusion|variadic-op-splitter")
    (path,) = (p for p in tmp_path.iterdir() if changed in p.name)
    text = path.read_text()
    assert " multiply(" in text
    path.write_text(text.replace(" multiply(", " add("))
    assert not verified(tmp_path).agrees


def test_the_report_names_the_passes_without_a_dump(hlofuse: Run, gpt2_whole: Path, tmp_path: Path) -> None:
    folder = narrow(gpt2_whole, tmp_path, "fusion|variadic-op-splitter")
    for form in ("text", "markdown"):
        result = hlofuse("verify", folder, "--device", "h100_sxm", "--format", form, columns=200)
        assert result.status == 0
        assert "(no dump after them): cse (1 module)" in result.out.replace("\\", "")


def test_a_directory_without_a_result_says_what_is_missing(gpt2_whole: Path, tmp_path: Path) -> None:
    with pytest.raises(HlofuseError, match=r"(?s)no dump after a fusion pass.*XLA_FLAGS=.*pass_re=\.\*"):
        find_cases(narrow(gpt2_whole, tmp_path, "sort-iota-fusion|variadic-op-splitter"), target="gpu")


def test_a_pass_without_a_dump_changed_nothing_where_all_passes_were_dumped(
    tmp_path: Path, samples: Path
) -> None:
    before = samples / "cpu" / "softmax" / "before.hlo"
    for stage in (
        "0000.simplification.after_pipeline-start.before_algsimp",
        "0001.hlo_normalization.after_pipeline-start.before_reshape-decomposer",
        f"0002.{PIPELINE}.after_pipeline-start.before_fusion",
        "0003.simplification_after_layout_assignment.after_pipeline-start.before_algsimp",
    ):
        shutil.copy(before, tmp_path / f"module_0001.jit_softmax.{stage}.txt")
    (verdict,) = verify(find_cases(tmp_path)[0]).verdicts
    assert verdict.difference is not None
    assert (verdict.difference.pass_name, verdict.not_dumped) == ("fusion", ())
