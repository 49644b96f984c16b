"""The pytest plugin: `fusion_snapshot` and `--fusion-update`. Loads hlofuse when a test asks for it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hlofuse.reports.check import Profile

FOLDER = "fusion_snapshots"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hlofuse")
    group.addoption(
        "--fusion-update", action="store_true", help="Write the fusion snapshots from the current state."
    )


@pytest.fixture
def fusion_snapshot(request: pytest.FixtureRequest) -> "Callable[..., Profile]":
    """A function `fusion_snapshot(program)` that compares the fusion result with
    `fusion_snapshots/FILE/TEST.toml`.

    program: as for `hlofuse.testing.assert_fusion`; name: its name in the snapshot, by default its own;
    strict: any difference fails, else only more kernels, or bytes or time beyond `tolerance` (a share);
    profile: one of the program, whose measured time counts then."""
    path: Path = request.path
    stem = re.sub(r"[^A-Za-z0-9_.-]", "_", request.node.name)[:120]
    file = path.parent / FOLDER / path.stem / f"{stem}.toml"
    update = bool(request.config.getoption("--fusion-update"))

    def compare(
        program: Any,
        *,
        name: str | None = None,
        target: str | None = None,
        device: str | None = None,
        strict: bool = True,
        tolerance: float = 0.0,
        profile: str | None = None,
    ) -> "Profile":
        from hlofuse.ir import replace
        from hlofuse.library.measuring import on_cpu_of
        from hlofuse.reports.check import check_modules, read_baseline
        from .asserting import measure, report

        stored = read_baseline(file) if file.exists() else None
        with on_cpu_of(stored.profiles if stored is not None else {}):
            found = measure(program, target, device, Path(request.config.rootpath), profile)
        found = replace(found, profile=replace(found.profile, name=name or found.profile.name))
        if update:
            _write(file, found.profile)
            return found.profile
        if stored is None or found.profile.name not in stored.profiles:
            pytest.fail(
                f"no snapshot of {found.profile.name} in {file}; run pytest --fusion-update and review it",
                pytrace=False,
            )
        check = check_modules([found], baseline=stored, all_there=False, strict=strict, tolerance=tolerance)
        if check.failed:
            pytest.fail(f"{report(check)}\n({file}; --fusion-update accepts it)", pytrace=False)
        return found.profile

    return compare


def _write(file: Path, profile: "Profile") -> None:
    from hlofuse.cli.common.output import write_file
    from hlofuse.reports.check.baseline import updated_files

    for path, text in updated_files(file, [profile]).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, text)
