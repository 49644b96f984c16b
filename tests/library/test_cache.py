"""The cache of replays: the same answers with it, and nothing from an entry that is another's or damaged."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hlofuse.cli.common import request
from hlofuse.ir import Computation, print_module
from hlofuse.library import cache
from hlofuse.library.opening import open as opened
from hlofuse.library.options import SILENT, ReplayOptions
from hlofuse.reports.verdict import verdict as module
from hlofuse.reports.verdict.model import Verdict
from ..running import Run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, which stores whatever was worked out."""
    monkeypatch.setattr(request, "_SLOW", 0.0)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def entry(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    return folder / "a.replay"


QUESTIONS = ("kernels",), ("explain", "--details"), ("explain", "--format", "json"), ("memory",)


@pytest.mark.parametrize(
    ("sample", "name"),
    [("gpu/gpt2_block", "fusion.8"), ("cpu/softmax", "ynn_fusion"), ("tutorial/slow", "loss.py:8")],
)
def test_answers_are_the_same(hlofuse: Run, samples: Path, folder: Path, sample: str, name: str) -> None:
    questions = [*QUESTIONS, ("why", name), ("why", "nothing")]
    arguments = [(q[0], samples / sample, *q[1:]) for q in questions]
    alone = [hlofuse(*call, "--no-cache") for call in arguments]
    assert not folder.exists()
    # The first stores, and later ones go on from what all before them have stored.
    assert [hlofuse(*call) for call in arguments] == alone
    assert [hlofuse(*call) for call in arguments[::-1]] == alone[::-1]
    (entry,) = cache.entries()
    state, _ = cache.read(entry, SILENT)
    assert {"replayed", "facts", "verdict"} <= set(state)


def test_a_fusion_is_read_when_it_is_asked_for(samples: Path, entry: Path) -> None:
    replay = opened(samples / "gpu" / "gpt2_block").replay
    cache.write(entry, replay)
    for other in (cache.read(entry, SILENT) for _ in range(2)):
        apart = [c for c in other.after.computations if type(c) is not Computation]
        assert bool(apart) is not cache._IS_COMPILED
        for body in apart[:2]:
            assert len(body)
            assert type(body) is Computation
        cache.write(entry, other)  # with what has not been read so far
        assert print_module(other.after) == print_module(replay.after)


def test_changes_are_tried_once(
    hlofuse: Run, samples: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trials are what takes longest; the figures shown meanwhile must not cost a later `explain` another."""
    tried = list[bool]()

    def counted(*args: Any, **how: Any) -> Verdict:
        tried.append(how.get("about_all", True))
        return original(*args, **how)

    original = module.verdict
    monkeypatch.setattr(module, "verdict", counted)
    first, second = (hlofuse("explain", samples / "cpu" / "softmax") for _ in range(2))
    assert first == second
    assert tried.count(True) == 1


def test_another_content_or_option_is_another_entry(
    hlofuse: Run, samples: Path, tmp_path: Path, folder: Path
) -> None:
    for file in ("before.hlo", "after.hlo"):
        shutil.copy(samples / "gpu" / "softmax" / file, tmp_path)
    path = tmp_path / "before.hlo"

    def key(**options: object) -> Path | None:
        return cache.place_of(ReplayOptions(str(path), **options))  # type: ignore[arg-type]

    first = key(device="h100_sxm")
    assert first == key(device="h100_sxm")
    assert first != key(device="v100")
    assert first != key(device="h100_sxm", strict=True)
    text = path.read_text()
    path.write_text(text.replace("exponential", "tanh"))
    assert first != key(device="h100_sxm")
    path.write_text(text)
    assert first == key(device="h100_sxm")
    (tmp_path / "after.hlo").unlink()  # XLA's own result belongs to the answer
    assert first != key(device="h100_sxm")
    assert key(device="h100_sxm", no_cache=True) is None
    assert cache.place_of(ReplayOptions("-")) is None


def test_a_damaged_entry_is_replaced(hlofuse: Run, samples: Path, folder: Path) -> None:
    call = "explain", samples / "cpu" / "softmax"
    first = hlofuse(*call)
    (file,) = folder.iterdir()
    good = file.read_bytes()
    for bad in (b"", good[:100], good[:-1], good[:200] + bytes([good[200] ^ 1]) + good[201:]):
        file.write_bytes(bad)
        assert hlofuse(*call) == first
        assert file.read_bytes() != bad


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has other permissions")
def test_what_others_can_write_is_not_read(entry: Path) -> None:
    cache.write(entry, "kept")
    assert cache.read(entry, SILENT) == "kept"
    for path, mode in ((entry, 0o660), (entry.parent, 0o777)):
        own = path.stat().st_mode
        path.chmod(mode)
        assert cache.read(entry, SILENT) is None
        path.chmod(own)
    assert cache.read(entry, SILENT) == "kept"
    entry.parent.chmod(0o777)
    cache.write(entry.with_name("b.replay"), "more")
    assert len(cache.entries()) == 1


def test_what_was_not_used_for_longest_goes_first(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 20_000)
    for number in range(6):
        other = entry.with_name(f"{number}.replay")
        cache.write(other, "x" * 4_500)
        os.utime(other, (number, number))
        if number == 3:
            assert cache.read(entry.with_name("0.replay"), SILENT) is not None
    names = sorted(p.name for p in entry.parent.iterdir())
    assert names == ["0.replay", "3.replay", "4.replay", "5.replay"]
    cache.write(entry, "x" * 6_000)  # more than a quarter of all
    assert not entry.exists()


def test_several_may_write_at_once(entry: Path) -> None:
    def work(number: int) -> object:
        cache.write(entry, [number] * 10_000)
        return cache.read(entry, SILENT)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(40)))
    assert all(isinstance(x, list) and len(x) == 10_000 and len(set(x)) == 1 for x in found)
    assert [p.name for p in entry.parent.iterdir()] == ["a.replay"]


def test_what_cannot_be_stored_is_left_out(entry: Path) -> None:
    cache.write(entry, lambda: None)
    assert cache.read(entry, SILENT) is None
    assert not list(entry.parent.iterdir())


def test_cache_shows_and_clears(hlofuse: Run, samples: Path, folder: Path) -> None:
    assert hlofuse("cache").out == f"{folder}: 0 entries, 0 B of at most 1.00 GB\n"
    hlofuse("explain", samples / "cpu" / "softmax")
    assert ": 1 entry, " in hlofuse("cache").out
    assert hlofuse("cache", "--clear").out.endswith(" removed\n")
    assert not list(folder.iterdir())
    assert hlofuse("cache", HLOFUSE_CACHE="off").out == "The cache is off (HLOFUSE_CACHE).\n"
    hlofuse("explain", samples / "cpu" / "softmax")
    assert not list(folder.iterdir())
