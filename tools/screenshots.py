"""Take the pictures that the documentation shows (`make screenshots`).

Those of the explorer's page are of samples, and of a GPT-2 training step and a dump directory from the tests'
data, in Chromium; the others are drawn.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
SAMPLES = ROOT / "samples"
SIZE = {"width": 1280, "height": 780}
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")

TRAINING_STEP = ("gpu", "h100_sxm/gpt2_train_step/before.hlo")
DUMP_DIRECTORY = ("gpu-dump-directory", "gpu-dump")

SOURCE = SAMPLES / "cartpole" / "programs.py"

# Name of the picture, sample (or archive and what of it), options, address, dark.
SHOTS: list[tuple[str, str | tuple[str, str], list[str], str, bool]] = [
    ("explore-kernels", "gpu/gpt2_block", ["--device", "h100_sxm"], "#view=fusion", False),
    ("explore-step", "gpu/gpt2_block", ["--device", "h100_sxm"], "#step=137&tab=decisions", False),
    (
        "explore-source",
        "cartpole/gpu/no_concatenate",
        ["--device", "h100_sxm", "--source", "{program}"],
        "#tab=source&view=fusion&show=loop_add_select_fusion",
        False,
    ),
    ("explore-dark", "cartpole/cpu/no_concatenate", [], "#view=fusion&colour=bytes&tab=refused", True),
    ("explore-passes", DUMP_DIRECTORY, ["--device", "h100_sxm"], "#view=film&dump=0010", False),
    ("explore-train-step", TRAINING_STEP, ["--device", "h100_sxm"], "#tab=kernels&view=fusion", False),
    (
        "explore-scopes",
        TRAINING_STEP,
        ["--device", "h100_sxm"],
        "#tab=kernels&view=scope&colour=time",
        False,
    ),
    (
        "explore-devices",
        "gpu/gpt2_block",
        ["--device", "h100_sxm", "--compare-device", "v100"],
        "#split=runs",
        False,
    ),
]

# Name of the picture, and the command that draws it, in the folder of the samples.
DRAWINGS = {
    "softmax": ["render", "cpu/softmax/before.hlo", "--view", "both"],
    "tutorial": ["render", "tutorial/slow", "--focus", "ynn_fusion.4", "--radius", "1"],
    "gpt2-passes": ["plot", "gpu/gpt2_block", "--kind", "passes"],
}


def unpacked(archive: str, member: str, folder: Path) -> Path:
    """A file or folder of the tests' data."""
    with tarfile.open(ROOT / "tests" / "data" / f"{archive}.tar.xz") as tar:
        wanted = [m for m in tar if m.name == member or m.name.startswith(f"{member}/")]
        tar.extractall(folder, wanted, filter="data")
    return folder / member


def as_webp(browser: Browser, png: bytes) -> bytes:
    """A third of the size; the browser can do that."""
    page = browser.new_page()
    address = page.evaluate(
        """async (data) => {
            const image = new Image();
            image.src = `data:image/png;base64,${data}`;
            await image.decode();
            const { width, height } = image;
            const canvas = Object.assign(document.createElement("canvas"), { width, height });
            canvas.getContext("2d").drawImage(image, 0, 0);
            return canvas.toDataURL("image/webp", 0.7);
        }""",
        base64.b64encode(png).decode(),
    )
    page.close()
    return base64.b64decode(address.partition(",")[2])


def main() -> int:
    for picture, command in DRAWINGS.items():
        text = [sys.executable, "-m", "hlofuse", *command, "-o", str(IMAGES / f"{picture}.svg")]
        subprocess.run(text, check=True, cwd=SAMPLES)
    path = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        program = folder / "program"
        program.mkdir()
        # As old as it was when it was compiled, whatever a checkout says.
        os.utime(shutil.copy(SOURCE, program), (0, 0))
        for picture, sample, options, address, dark in SHOTS:
            dump = SAMPLES / sample / "before.hlo" if isinstance(sample, str) else unpacked(*sample, folder)
            html = folder / f"{picture}.html"
            text = [sys.executable, "-m", "hlofuse", "explore", str(dump), "-o", str(html)]
            text += [option.format(program=program) for option in options]
            subprocess.run(text, check=True)
            page = browser.new_page(viewport=SIZE, color_scheme="dark" if dark else "light")
            page.goto(html.as_uri() + address)
            page.wait_for_selector("html[data-ready]")
            page.wait_for_timeout(400)  # until what fades in has done so
            out = IMAGES / f"{picture}.webp"
            out.write_bytes(as_webp(browser, page.screenshot()))
            page.close()
            print(f"{out.name} {out.stat().st_size / 1000:.0f} kB")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
