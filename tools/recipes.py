"""Compile the recipes of docs/recipes with XLA and compare it with the figures of their pages.

    recipes.py [NAME...] [--python PYTHON] [--xla RELEASE] [--device DEVICE]... [--write]

A page holds a program before and after the change. XLA compiles both for each device of the page; the
figures are read from XLA's own modules. Exit status 1 if a figure differs or the change no longer pays.
--write writes the tables, the modules that the tests replay (tests/recipes/data.tar.xz) and the index.

PYTHON is an interpreter with JAX and its plugin for CUDA, or libtpu for a TPU; RELEASE says which jaxlib
that is. `--device v5e` takes every page: a row of the table may say that the change does not pay there.
"""

from __future__ import annotations

import argparse
import csv
import io
import lzma
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from pathlib import Path

from hlofuse.account import Account, KernelTimes, Totals
from hlofuse.account.tpu import TpuAccount
from hlofuse.capture import settled_destination
from hlofuse.capture.capturing import capture_function
from hlofuse.cost.gpu.device import load_device
from hlofuse.cost.tpu import tpu_devices
from hlofuse.format.units import bytes_text
from hlofuse.inputs import load
from hlofuse.releases import release_of
from hlofuse.reports.advice.catalogue import WRITTEN
from hlofuse.reports.common.recipe_page import FORM

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs" / "recipes"
DATA = ROOT / "tests" / "recipes" / "data.tar.xz"
"""XLA's modules, as NAME/DEVICE/SIDE/FILE."""
SIDES = ("before", "after")
FILES = {"before.hlo": "input.hlo", "after.hlo": "fused.hlo"}
"""Of a capture, and what they are called in the data of a recipe."""
FINAL = {"after_optimizations.hlo": "final.hlo"}
"""The same, for a TPU, whose passes are not replayed."""
TPU = "v5e"
"""Has a row on each page whose program XLA:TPU compiles."""
UNOPTIMIZED = {"before_optimizations.hlo": "unoptimized.hlo"}
"""The same, for the side before of a recipe that is changed before optimizations."""
HEAD = "| device | XLA | kernels | launches | moved | time |\n|---|---|---|---|---|---|\n"


@dataclass(frozen=True, slots=True)
class Figures:
    """What a module launches and moves."""

    kernels: int
    launches: int
    moved: int
    us: float | None
    unknown: bool = False
    """It holds library calls whose bytes and time are unknown."""
    temporary: int = 0
    is_floor: bool = False
    """`us` is a lower bound: XLA:TPU has no estimate for some kernels."""

    def pays_against(self, before: Figures, speedup: float = 1.0) -> bool:
        """True if there are fewer kernels, launches or bytes, or less time, and the time is not longer; or a
        quarter of the temporary memory.

        `speedup` is measured, for a device without a model of time.
        """
        if 0 < 4 * self.temporary <= before.temporary:
            return True
        if before.us is not None and self.us is not None and self.us > before.us * 1.02:
            return False
        fewer = self.kernels < before.kernels or self.launches < before.launches
        less_moved = not self.unknown and self.moved < before.moved * 0.98
        faster = before.us is not None and self.us is not None and self.us < before.us * 0.98
        return fewer or less_moved or faster or speedup > 1.1


@dataclass(slots=True)
class Page:
    """A recipe's page."""

    path: Path
    title: str
    symptom: str
    rules: tuple[str, ...]
    devices: tuple[str, ...]
    code: str
    rows: dict[str, str] = field(default_factory=dict)
    """The lines of the table by device."""

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def padded_code(self) -> str:
        """With the lines where they are on the page."""
        text = self.path.read_text(encoding="utf-8")
        above = text[: text.index("```python\n") + len("```python\n")].count("\n")
        return "\n" * above + self.code

    @property
    def flags(self) -> dict[str, str]:
        """Further XLA_FLAGS of each side."""
        found = {side: re.search(rf'^flags_{side} = "(.*)"$', self.code, re.MULTILINE) for side in SIDES}
        return {side: match[1] if match else "" for side, match in found.items()}

    @property
    def mesh(self) -> int:
        """How many devices the program is divided over."""
        match = re.search(r"^mesh = (\d+)$", self.code, re.MULTILINE)
        return int(match[1]) if match else 1

    def namespace(self) -> dict[str, object]:
        """What the page's program defines."""
        names: dict[str, object] = {}
        exec(compile(self.padded_code, self.path.name, "exec"), names)
        return names


def read_page(path: Path) -> Page:
    """ValueError for a page that is not in the form."""
    match = FORM.fullmatch(path.read_text(encoding="utf-8"))
    if match is None:
        raise ValueError(f"{path.name} is not in the form of a recipe's page")
    names = {
        key: tuple(match[key].replace("–", "").replace(",", " ").split()) for key in ("rules", "devices")
    }
    rows = re.findall(r"^\| (\w+) \|.*\|$", match["rest"].replace(HEAD, ""), re.MULTILINE)
    lines = re.findall(r"^\| \w+ \|.*\|$", match["rest"].replace(HEAD, ""), re.MULTILINE)
    symptom = " ".join(match["symptom"].split())
    table = dict(zip(rows, lines, strict=True))
    return Page(path, match["title"], symptom, names["rules"], names["devices"], match["code"], table)


def pages(names: Sequence[str] = ()) -> list[Page]:
    """All of them, or those of these names."""
    paths = [DOCS / f"{n}.md" for n in names] or sorted(p for p in DOCS.glob("*.md") if p.stem.islower())
    return [read_page(p) for p in paths]


# ------------------------------------------------------------ figures


def figures_of(totals: Totals) -> Figures:
    """The time is that of kernels, as measured ones are, without waits for the host."""
    us = totals.us - totals.host_wait_us if totals.us is not None else None
    temporary = totals.peak_temporary_bytes or 0
    moved = totals.cost.bytes_accessed
    return Figures(totals.kernels, totals.launches, moved, us, totals.cost.unknown > 0, temporary)


def xla_figures(file: Path, device: str, xla: str) -> Figures:
    """Of XLA's own final module."""
    module = load(str(file))
    if device == "cpu":
        return figures_of(Account(module, backend="cpu", is_final=True).totals)
    if device in tpu_devices():
        totals = TpuAccount(module, device, is_final=True).totals
        return replace(figures_of(totals), is_floor=totals.is_floor)
    times = KernelTimes(load_device(device), release_of(xla))
    return figures_of(times.account(module, is_final=True).totals)


def row_of(device: str, xla: str, before: Figures, after: Figures, speedup: float | None = None) -> str:
    """A line of the table; `speedup` is measured, for a device without a model of time."""
    moved = f"{bytes_text(before.moved)} → {bytes_text(after.moved)}"
    if before.us is not None and after.us is not None:
        bounds = ["≥ " * figures.is_floor for figures in (before, after)]
        time = f"{bounds[0]}{_us(before.us)} → {bounds[1]}{_us(after.us)} µs"
    else:
        time = f"{speedup:.1f}×" if speedup is not None and speedup > 1.1 else "–"
    if before.unknown or after.unknown:
        moved = "–"
        time = time if device in tpu_devices() else "–"
    time += ", XLA's estimate" * (device in tpu_devices())
    kernels, launches = f"{before.kernels} → {after.kernels}", f"{before.launches:,} → {after.launches:,}"
    return f"| {device} | {xla} | {kernels} | {launches} | {moved} | {time} |"


def _us(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


# ------------------------------------------------------------ compiling

_PROGRAMS = """
import jax
PROGRAMS = {}
for name, file, code, sides in SOURCES:
    names = {}
    exec(compile(code, file, "exec"), names)
    for side in sides:
        function = names[side]
        program = lambda *a, function=function, **k: function(*a, **k)
        program.__name__ = f"{name}--{side}"
        program = jax.jit(program, donate_argnums=names.get(f"donate_{side}", ()))
        PROGRAMS[f"{name}--{side}"] = program, names.get(f"arguments_{side}", names.get("arguments"))
"""


def compiled(
    chosen: Iterable[Page], device: str, out: Path, *, python: str | None = None
) -> Iterator[tuple[Page, dict[str, Path]]]:
    """The captured folders of both sides of each page; those with the same flags are compiled together."""
    sides = sorted(((p.flags[s], p.mesh, p.name, s, p) for p in chosen for s in SIDES), key=lambda s: s[:4])
    found: dict[str, dict[str, Path]] = {}
    for number, ((flags, mesh), group) in enumerate(groupby(sides, key=lambda s: s[:2])):
        by_page: dict[str, tuple[Page, list[str]]] = {}
        for *_, side, page in group:
            by_page.setdefault(page.name, (page, []))[1].append(side)
        sources = [(p.name, p.path.name, p.padded_code, s) for p, s in by_page.values()]
        script = out / f"programs_{number}.py"
        script.write_text(f"SOURCES = {sources!r}\n{_PROGRAMS}", encoding="utf-8")
        folder, axes = out / f"{device}-{number}", ((None, mesh),) if mesh > 1 else ()
        destination = settled_destination(None, None if device == "cpu" else device, None, axes)
        captured = capture_function(str(script), "PROGRAMS", destination, folder, python=python, flags=flags)
        for program, why in [*captured.errors.items(), *captured.left_out.items()]:
            print(f"{device} {program}: {why}", file=sys.stderr)
        for module in captured.modules:
            name, _, side = module.name.rpartition("--")
            found.setdefault(name, {})[side] = module.folder
    for page in chosen:
        if len(found.get(page.name, ())) == len(SIDES):
            yield page, found[page.name]
        else:
            print(f"{page.name}: not compiled for {device}", file=sys.stderr)


def measured_speedup(page: Page, python: str | None) -> float | None:
    """How many times faster the change is on this machine's CPU; None with flags or a mesh."""
    if any(page.flags.values()) or page.mesh > 1:
        return None
    script = ROOT / "tools" / "measure_recipe.py"
    run = subprocess.run([python or sys.executable, script, page.path], capture_output=True, text=True)
    if run.returncode:
        print(f"{page.name}: {run.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return float(run.stdout)


# ------------------------------------------------------------ writing


_MEASURED = re.compile(r"\n*Measured on [^\n]+\n")


@cache
def measured() -> dict[str, str]:
    """By the name of a recipe the times of its program on an H200: kernels of one run, the mean of twelve."""
    with open(DOCS / "measured.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {r["recipe"]: f"{_us(float(r['before_us']))} → {_us(float(r['after_us']))} µs" for r in rows}


def measured_line(page: Page) -> str:
    """What the page says of its program on a GPU; empty where none ran it."""
    if page.name not in measured():
        return ""
    return f"Measured on an H200, jaxlib 0.11.2: {measured()[page.name]}."


def write_measured(page: Page) -> None:
    """Write that line below the table."""
    text = _MEASURED.sub("\n", page.path.read_text(encoding="utf-8")).rstrip("\n")
    line = measured_line(page)
    page.path.write_text(f"{text}\n" + (f"\n{line}\n" if line else ""), encoding="utf-8")


def write_table(page: Page, rows: Sequence[str]) -> None:
    text = page.path.read_text(encoding="utf-8")
    end = text.index("```\n", text.index("```python\n")) + len("```\n")
    below = text[end:].split(HEAD)[-1] if HEAD in text else text[end:]
    prose = "\n".join(line for line in below.split("\n") if not line.startswith("| ")).strip("\n")
    table = HEAD + "\n".join(rows) + "\n"
    page.path.write_text(f"{text[:end]}\n{table}" + (f"\n{prose}\n" if prose else ""), encoding="utf-8")


def write_data(found: dict[str, dict[str, dict[str, Path]]]) -> None:
    """XLA's modules at the input of fusion and after it, for each recipe, device and side."""
    with tarfile.open(DATA) as tar:
        members = {m.name: f.read() for m in tar if (f := tar.extractfile(m)) is not None}
    compiled = {f"{name}/{device}" for name, folders in found.items() for device in folders}
    devices = {p.name: p.devices for p in pages()}
    old = [n for n in members if n.partition("/")[0] in devices and n.rsplit("/", 2)[0] not in compiled]
    members = {n: members[n] for n in old}
    for name, folders in found.items():
        for device, sides in folders.items():
            for side in SIDES:
                files = FINAL if device in tpu_devices() else FILES
                is_changed = side == "before" and name in WRITTEN and device in devices[name]
                for file, own in (files | (UNOPTIMIZED if is_changed else {})).items():
                    members[f"{name}/{device}/{side}/{own}"] = (sides[side] / file).read_bytes()
    with io.BytesIO() as buffer:
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for member, data in sorted(members.items()):
                info = tarfile.TarInfo(member)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        DATA.write_bytes(lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def index() -> str:
    """The index of all pages, by symptom."""
    lines = [
        "# Recipes",
        "",
        "Changes to a program, each with the figures of XLA's own compilation before and after.",
        "Times are those of kernels; in loops on a GPU waits for the host come on top.",
        "Those of a TPU are XLA:TPU's own estimates: cycles over the clock, `≥` where a kernel has none.",
        "The last column was measured on an H200.",
        "",
    ]
    lines += ["| symptom | recipe | rule | measured |", "|---|---|---|---|"]
    for page in sorted(pages(), key=lambda p: (p.rules or ("~",), p.name)):
        rules = ", ".join(page.rules) or "–"
        symptom = page.symptom.replace("|", "\\|")
        on_gpu = measured().get(page.name, "–")
        lines.append(f"| {symptom} | [{page.title}]({page.path.name}) | {rules} | {on_gpu} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--python", help="the Python whose JAX compiles, if not this one")
    parser.add_argument("--xla", default="0.11.1", metavar="RELEASE")
    parser.add_argument("--device", action="append", default=[], help="only these devices of the pages")
    parser.add_argument("--write", action="store_true")
    a = parser.parse_args()
    chosen = pages(a.names)
    rows: dict[str, dict[str, str]] = {p.name: {} for p in chosen}
    folders: dict[str, dict[str, dict[str, Path]]] = {p.name: {} for p in chosen}
    status = 0
    with tempfile.TemporaryDirectory() as scratch:
        listed = dict.fromkeys(d for p in chosen for d in (*p.devices, TPU))
        for device in (d for d in listed if d in a.device or (not a.device and d != TPU)):
            of_device = [p for p in chosen if device in (*p.devices, TPU)]
            seen = dict.fromkeys(p.name for p in of_device)
            for page, sides in compiled(of_device, device, Path(scratch), python=a.python):
                before, after = (
                    xla_figures(sides[s] / "after_optimizations.hlo", device, a.xla) for s in SIDES
                )
                speedup = measured_speedup(page, a.python) if device == "cpu" else None
                row = row_of(device, a.xla, before, after, speedup)
                seen.pop(page.name)
                rows[page.name][device], folders[page.name][device] = row, sides
                pays = after.pays_against(before, speedup or 1.0)
                same = a.write or without_release(row) == without_release(page.rows.get(device, ""))
                pays |= device not in page.devices
                note = "" if pays else "  DOES NOT PAY"
                note += "" if same else f"\n    the page has {page.rows.get(device)}"
                status |= not (pays and same)
                print(f"{page.name:34} {row}{note}", flush=True)
            status |= bool(seen)
        if a.write:
            for page in chosen:
                found = page.rows | rows[page.name]
                if set(page.devices) <= set(found):
                    write_table(page, [found[d] for d in dict.fromkeys((*page.devices, *found))])
                    write_measured(page)
            write_data(folders)
            (DOCS / "README.md").write_text(index(), encoding="utf-8")
    return status


def without_release(row: str) -> str:
    """A line of a table without the release, and on the CPU without the measured time."""
    cells = row.split(" | ")
    return " | ".join(cells[:1] + cells[2 : 5 if row.startswith("| cpu ") else 6])


if __name__ == "__main__":
    sys.exit(main())
