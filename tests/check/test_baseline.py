"""The stored baseline: what is written is what is read, by a person too."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlofuse.account import Account, observed_replay
from hlofuse.compilation import replay_config
from hlofuse.ir import HlofuseError, parse_module
from hlofuse.reports.check import Profile, read_baseline
from hlofuse.reports.check.baseline import module_text, updated_files
from hlofuse.reports.check.check import profile_of_replay, profile_of_result
from hlofuse.reports.common.facts import Facts
from ..diff.programs import Program, programs, text
from .profiles import profile

MODULE = '[module."m"]\ntarget = "cpu"\nkernels = 1\nbytes = 5\nlist = ["m.py:1 f | copy"]\n'


def write(path: Path, *profiles: Profile) -> None:
    for file, content in updated_files(path, profiles).items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")


@settings(max_examples=60)
@given(programs(), st.integers(0, 1000))
def test_renamed_and_reordered_copies_have_the_same_baseline(program: Program, seed: int) -> None:
    modules = parse_module(text(program)), parse_module(text(program, seed=seed))
    stored = [module_text(profile_of_result("m", Account(m), "cpu", None, Path())) for m in modules]
    assert stored[0] == stored[1]


def test_it_reads_like_this(samples: Path) -> None:
    module = parse_module((samples / "gpu" / "softmax" / "before.hlo").read_text())
    observed = observed_replay(module, replay_config("gpu", "h100_sxm"))
    assert module_text(profile_of_replay("softmax", Facts(observed.replay, observed.costs), Path())) == (
        '[module."softmax"]\n'
        'target = "gpu"\n'
        'device = "h100_sxm"\n'
        'xla = "jaxlib 0.11.1"\n'
        "kernels = 1\n"
        "bytes = 8_388_608\n"
        "time_us = 3.59\n"
        "memory = 8_388_632\n"
        "list = [\n"
        '  "programs.py:89 softmax | kCustom: broadcast×2, divide, exponential, reduce×2, subtract",\n'
        "]\n"
    )


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@settings(max_examples=60)
@given(name=NAMES, what=NAMES)
def test_any_module_name_comes_back(name: str, what: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("b") / "b.toml"
    write(
        path, profile("m.py:1 f | kLoop: add", "m.py:1 f | kLoop: add", "| copy", name=name, moved=7, us=1.5)
    )
    (read,) = read_baseline(path).profiles.values()
    assert read.figures.kernels == len(read.kernels) == 3
    assert (read.figures.bytes, read.figures.us) == (7, 1.5)


def test_what_stands_above_the_first_module_survives_an_update(tmp_path: Path) -> None:
    path = tmp_path / "b.toml"
    head = '# ours\nversion = 1\n[[budget]]\nmodules = "m*"\nmax-bytes = "2 KiB"  # why\n'
    path.write_text(head + "\n" + MODULE, encoding="utf-8")
    write(path, profile("m.py:2 g | kLoop: add"), profile("m.py:3 h | kLoop: add", name="n"))
    assert path.read_text(encoding="utf-8").startswith(head)
    stored = read_baseline(path)
    assert [b.bytes for b in stored.budgets] == [2048]
    assert {n: p.kernels[0].where.function for n, p in stored.profiles.items()} == {"m": "g", "n": "h"}


def test_modules_that_are_not_given_stay(tmp_path: Path) -> None:
    write(tmp_path / "b.toml", profile("m.py:1 f | copy"), profile("m.py:2 g | copy", name="n"))
    write(tmp_path / "b.toml", profile("m.py:1 f | kLoop: add"))
    stored = read_baseline(tmp_path / "b.toml").profiles
    assert {name: p.kernels[0].what for name, p in stored.items()} == {"m": "kLoop: add", "n": "copy"}


def test_a_folder_has_a_file_for_each_module(tmp_path: Path) -> None:
    write(
        tmp_path / "d", profile("m.py:1 f | copy", name="jit_f"), profile("m.py:1 f | copy", name="../g (2)")
    )
    assert sorted(p.name for p in (tmp_path / "d").iterdir()) == ["_g__2_.toml", "jit_f.toml"]
    assert set(read_baseline(tmp_path / "d").profiles) == {"jit_f", "../g (2)"}


def test_modules_that_would_share_a_file_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "d", profile("m.py:1 f | copy", name="a b"))
    with pytest.raises(HlofuseError, match="belongs to module a b; give a FILE instead"):
        write(tmp_path / "d", profile("m.py:1 f | copy", name="a/b"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("version = ", "not TOML"),
        ("x = 1", "expected version = 1"),
        ("version = 2", "expected version = 1"),
        ("version = 1\nmodul = 3", "top level: object contains unknown field `modul`"),
        ("version = 1\nmodule = 3", r"top level: expected `object`, got `int` - at `.\.module`"),
        ("version = 1\n[[budget]]\nmodules = '*'", "needs max-kernels"),
        (
            "version = 1\n[[budget]]\nmax-kernels = -1",
            r"\[\[budget\]\]: expected `int` >= 0 - at `.\.max-kernels`",
        ),
        (
            "version = 1\n[module.m]\ntarget='cpu'\nkernels=true\nbytes=1",
            r"module m: expected `int`, got `bool` - at `.\.kernels`",
        ),
        ("version = 1\n" + MODULE.replace("kernels = 1", "kernels = 2"), "has 1 kernels, but kernels = 2"),
        ("version = 1\n" + MODULE.replace(" | ", " "), "expected a line `PLACE | KERNEL`"),
        ("version = 1\n" + MODULE.replace('"m.py', '"0 × m.py'), "expected a line `PLACE | KERNEL`"),
    ],
)
def test_what_is_wrong_with_a_baseline_is_said(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "b.toml").write_text(content, encoding="utf-8")
    with pytest.raises(HlofuseError, match=message):
        read_baseline(tmp_path / "b.toml")


def test_a_budget_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text("version = 1\n[[budget]]\nmax-time = 3", encoding="utf-8")
    with pytest.raises(HlofuseError, match="'3': expected a time"):
        read_baseline(tmp_path / "b.toml")


def test_a_broken_baseline_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text("version = ", encoding="utf-8")
    with pytest.raises(HlofuseError, match="not TOML"):
        write(tmp_path / "b.toml", profile("m.py:1 f | copy"))
    assert (tmp_path / "b.toml").read_text(encoding="utf-8") == "version = "
