"""Draw every module that broke: `pictures.py REPORT.json FOLDER HLOFUSE`, after `hlofuse check`.

Standard library only. A module that cannot be drawn is named, and the others are drawn all the same.
"""

import json
import re
import subprocess
import sys
from pathlib import Path


def main(report: str, folder: str, hlofuse: str) -> None:
    modules = json.loads(Path(report).read_text(encoding="utf-8"))["modules"]
    for number, module in enumerate(m for m in modules if m["failed"]):
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", module["module"])[:80]
        text = [hlofuse, "render", module["file"], "-o", str(Path(folder, f"{number:03}-{name}.svg"))]
        if module["xla"] is not None:  # the passes were replayed: show what they make of it
            text += ["--view", "both", "--target", module["target"]]
            text += ["--device", module["device"]] if module["device"] is not None else []
        done = subprocess.run(text, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name} was not drawn: {done.stderr.strip()}", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
