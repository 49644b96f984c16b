"""Replay the best sequence of every module in results.json; exit status 1 where a figure is another."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hlofuse.gym.env import HloPassEnv
from hlofuse.search.space import count_ops


def main() -> int:
    stored = json.loads((Path(__file__).parent / "results.json").read_text())
    wrong = 0
    for name, module in stored["modules"].items():
        state = {"module": module["hash"], "actions": module["best"]["moves"]}
        ops = count_ops(HloPassEnv.replay(name, state))
        if ops != module["best"]["ops"]:
            wrong += 1
            print(f"{name}: {ops} operations, {module['best']['ops']} stored")
    print(f"{len(stored['modules']) - wrong} of {len(stored['modules'])} sequences leave what is stored")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
