#!/usr/bin/env python3
"""Measure the conditions learnt from XLA:TPU on compiled programs, and write their accuracy into their pages.

    tools/tpu_rules.py CAPTURE... [--write]

A CAPTURE is a folder of folders with `before.hlo` and `after.hlo`, as `hlofuse capture --device v5e -o` and
`tools/make_corpus.py` leave them. Measure on programs that no condition was derived from.
"""

import argparse
import re
import tomllib
from collections import Counter
from pathlib import Path

from hlofuse import load
from hlofuse.inputs.dump_directory import corpus_cases
from hlofuse.passes.fusion.tpu_fusion import Prediction
from hlofuse.reports.fused.tpu import compare_tpu
from hlofuse.rules.catalogue import page_file

PAGES = page_file("TP001")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("captures", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="write the accuracy into the pages")
    arguments = parser.parse_args()
    pairs: Counter[tuple[bool, bool]] = Counter()
    by_rule: Counter[tuple[str, bool]] = Counter()
    modules = exact = 0
    for case in (case for folder in arguments.captures for case in corpus_cases(folder)):
        before, after = load(case / "before.hlo"), load(case / "after.hlo")
        predicted, names = Prediction(before), {i.name: i for i in before.instructions()}
        right = True
        for edge in compare_tpu(before, after).edges:
            producer, consumer = names[edge.producer], names[edge.consumer]
            estimated = predicted.together(producer, consumer)
            pairs[edge.fused, estimated] += 1
            right &= edge.fused == estimated
            by_rule[predicted.refusal(producer, consumer) or "none", edge.fused] += 1
        modules, exact = modules + 1, exact + right
    total = sum(pairs.values())
    shares = [pairs[x, x] / max(1, pairs[x, False] + pairs[x, True]) for x in (True, False)]
    print(
        f"{modules} programs, {total:,} pairs: {(pairs[True, True] + pairs[False, False]) / total:.1%} right"
    )
    print(f"fused {shares[0]:.1%}, not fused {shares[1]:.1%}, mean {sum(shares) / 2:.1%}")
    print(f"all pairs right in {exact / modules:.0%} of programs")
    text = PAGES.read_text(encoding="utf-8")
    for code in tomllib.loads(text):
        apart, both = by_rule[code, False], by_rule[code, False] + by_rule[code, True]
        print(f"{code}: {apart} of {both}")
        old = rf"(\[{code}\].*?left )\d+ of \d+"
        text = re.sub(old, rf"\g<1>{apart} of {both}", text, flags=re.DOTALL)
    if arguments.write:
        PAGES.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
