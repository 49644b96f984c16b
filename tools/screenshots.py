"""Take the pictures of the explorer's page that the documentation shows (`make screenshots`).

They are of samples, and of a GPT-2 training step from the tests' data, in Chromium.
"""

from __future__ import annotations

import base64
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

# Name of the picture, sample, options, address, dark.
SHOTS = [
    ("explore-kernels", "gpu/gpt2_block", ["--device", "h100_sxm"], "#view=fusion", False),
    ("explore-step", "gpu/gpt2_block", ["--device", "h100_sxm"], "#step=137&tab=decisions", False),
    ("explore-dark", "cartpole/cpu/no_concatenate", [], "#step=330&tab=decisions", True),
    ("explore-train-step", "", ["--device", "h100_sxm"], "#tab=kernels&view=fusion", False),
    (
        "explore-devices",
        "gpu/gpt2_block",
        ["--device", "h100_sxm", "--compare-device", "v100"],
        "#split=runs",
        False,
    ),
]


def training_step(folder: Path) -> Path:
    """A dump of GPT-2's, unpacked."""
    out = folder / "gpt2_train_step.hlo"
    with tarfile.open(ROOT / "tests" / "data" / "gpu.tar.xz") as tar:
        content = tar.extractfile("h100_sxm/gpt2_train_step/before.hlo")
        assert content is not None
        out.write_bytes(content.read())
    return out


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
    path = next((found for name in CHROMIUM if (found := shutil.which(name))), None)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for picture, sample, options, address, dark in SHOTS:
            dump = SAMPLES / sample / "before.hlo" if sample else training_step(folder)
            html = folder / f"{picture}.html"
            words = [sys.executable, "-m", "hlofuse", "explore", str(dump), "-o", str(html), *options]
            subprocess.run(words, check=True)
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
