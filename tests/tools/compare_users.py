"""Lists of users as they are restored, beside those that the repeated passes leave.

    compare_users.py FOLDER... --device DEVICE [--text] [--show]

Each FOLDER has `before.hlo` and `before_optimizations.hlo`, as `hlofuse capture` leaves them, with their
`.hlo.pb`. Where the passes are repeated wholly, every list is known, of what XLA's record is silent about as
well: arguments, elements of tuples, whatever is refused. Prints how many differ by operation; with --show
the lists themselves, the passes' first. With --text ids are guessed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from hlofuse.cost.gpu.device import load_device
from hlofuse.inputs import load
from hlofuse.inputs.elided_literals import restore_literals
from hlofuse.inputs.named_order import in_order_made
from hlofuse.inputs.unique_ids import unique_ids_for
from hlofuse.ir.module import Module
from hlofuse.order.replayed import with_played_order
from hlofuse.pipelines.history import restore_history


def lists_of(module: Module) -> dict[str, tuple[str, list[str]]]:
    """By name of an instruction outside of fusions with several users, its opcode and their names."""
    outside = (x for c in module.computations if c.fusion is None for x in c)
    return {x.name: (x.opcode, [u.name for u in x.users]) for x in outside if len(x.users) > 1}


def played_lists(folder: Path, device: str) -> dict[str, tuple[str, list[str]]] | None:
    """The lists that the passes leave; None where they come to another module."""
    unoptimized = load(folder / "before_optimizations.hlo")
    restore_literals(unoptimized)
    in_order_made(unoptimized, unique_ids_for(unoptimized))
    played = with_played_order(load(folder / "before.hlo"), unoptimized, "gpu", load_device(device))
    return None if played is None else lists_of(played)


def main() -> None:
    """Print a line for each folder, then one for all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--device", required=True)
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--show", action="store_true")
    a = parser.parse_args()
    wrong: Counter[str] = Counter()
    compared = 0
    for folder in a.folders:
        played = played_lists(folder, a.device)
        if played is None:
            print(f"{folder.name}: not repeated wholly")
            continue
        module = load(folder / "before.hlo")
        restore_history(module, unique_ids_for(module, "none" if a.text else None))
        here: Counter[str] = Counter()
        for name, (opcode, users) in lists_of(module).items():
            _, truth = played.get(name, (opcode, []))
            if opcode == "constant" or sorted(truth) != sorted(users):
                continue
            compared += 1
            if truth != users:
                here[opcode] += 1
                if a.show:
                    print(f"  {name}\n    {' '.join(truth)}\n    {' '.join(users)}")
        wrong += here
        print(f"{folder.name}: {here.total()} differ", *(f"{k} {n}" for k, n in here.most_common(5)))
    print(f"{wrong.total()} of {compared} lists differ:", *(f"{k} {n}" for k, n in wrong.most_common()))


if __name__ == "__main__":
    main()
