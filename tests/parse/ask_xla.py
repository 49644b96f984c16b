"""Ask XLA's parser about every case and write its verdicts down. Needs jaxlib (0.11.1, Python 3.12).

python tests/parse/ask_xla.py          # fill in what is marked ?, report what has changed
python tests/parse/ask_xla.py --write  # take over what has changed
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from cases import VERDICTS, Case, cases  # type: ignore[import-not-found]


def ask(text: str) -> str:
    """accept, reject, or crash: XLA aborts the process on some texts, so each gets one of its own."""
    from jaxlib import _hlo  # type: ignore[attr-defined]

    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            _hlo.hlo_module_from_text(text)
            os.write(writing, b"accept")
        except Exception:
            os.write(writing, b"reject")
        os._exit(0)
    os.close(writing)
    answer = os.read(reading, 10).decode()
    os.close(reading)
    os.waitpid(child, 0)
    return answer or "crash"


def main() -> None:
    changed: dict[str, dict[int, tuple[Case, str]]] = {}
    for case in cases():
        verdict = ask(case.text)
        if verdict != case.xla:
            changed.setdefault(case.file, {})[case.line] = (case, verdict)
            if case.xla != "?":
                print(f"{case}: {case.xla} -> {verdict}: {case.snippet}")
    for file, entries in changed.items():
        path = VERDICTS / f"{file}.txt"
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, (case, verdict) in entries.items():
            if case.xla == "?" or "--write" in sys.argv:
                ours = "" if case.ours == case.xla else "/" + case.ours
                lines[number - 1] = f"{verdict}{ours} {case.snippet}"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
