"""Ask XLA's parser about every case and write its verdicts down. Needs jaxlib (0.11.1, Python 3.12).

python -m tests.parse.record_verdicts          # fill in what is marked ?, report what has changed
python -m tests.parse.record_verdicts --write  # take over what has changed
"""

from __future__ import annotations

import json
import subprocess
import sys

from .cases import VERDICTS, Case, cases

_ANSWER = """
import json, sys
from jaxlib import _hlo
for text in json.load(sys.stdin):
    try:
        _hlo.hlo_module_from_text(text)
        print("accept", flush=True)
    except Exception:
        print("reject", flush=True)
"""


def record(texts: list[str]) -> list[str]:
    """accept, reject or crash for each text.

    XLA aborts the process on some texts, so another process answers, and a new one goes on behind a
    text that ended it.
    """
    verdicts: list[str] = []
    while len(verdicts) < len(texts):
        child = subprocess.run(
            [sys.executable, "-c", _ANSWER],
            input=json.dumps(texts[len(verdicts) :]),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        verdicts += child.stdout.split()
        if len(verdicts) < len(texts):
            verdicts.append("crash")
    return verdicts


def main() -> None:
    changed: dict[str, dict[int, tuple[Case, str]]] = {}
    requested = list(cases())
    for case, verdict in zip(requested, record([c.text for c in requested]), strict=True):
        if verdict != case.xla:
            changed.setdefault(case.file, {})[case.line] = (case, verdict)
            if case.xla != "?":
                print(f"{case}: {case.xla} -> {verdict}: {case.snippet}")
    for file, entries in changed.items():
        path = VERDICTS / f"{file}.txt"
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, (case, verdict) in entries.items():
            if case.xla == "?" or "--write" in sys.argv:
                hlofuse = "" if case.hlofuse == case.xla else "/" + case.hlofuse
                lines[number - 1] = f"{verdict}{hlofuse} {case.snippet}"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
