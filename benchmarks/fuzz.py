"""Damaged dumps by the thousand: each gives a module or an `HloParseError`, soon, in bounded memory.

    python benchmarks/fuzz.py [DUMP.hlo ...] [--count 100000] [--seed 0] [--differential]

With `--differential` whatever the fast path takes by itself is read by the grammar as well, and the
two have to agree. Prints a line for every failure with the seed that repeats it; exit status 1 then.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "parse"))

from same import differences

from hlofuse.ir import HloParseError, Module, parse_module, print_module
from hlofuse.ir.text.build import parse_by_grammar
from hlofuse.ir.text.computation_reader import GrammarFallback
from hlofuse.ir.text.patterns import FastPathMiss
from hlofuse.ir.text.reader import read_fast
from tests.tools.module_checks import verify_module

SAMPLES = Path(__file__).parents[1] / "samples"
LARGEST = 6_000
"""Characters of a text that is damaged: enough for every construct, little enough for many of them."""
_BODY = re.compile(r"^(?:ENTRY )?%?[\w.\-]+ [^\n]*\{\n.*?\n\}", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"[\w.\-]+|\{[\d,]*\}")
PARTS = [
    *"{}()[]<>=,:;#*%\"'/\\\n\t\r \0-+.?~é",
    "/*", "*/", "//", "->", "<=", "...", "ROOT ", "ENTRY ", "f32[2]{0}", "%x", "x=", "1e5", "0_0", "}\n",
    "HloModule ", "99999999999999999999", "{...}", "#0", "parameter(0)", ", metadata={", "=%", "\n\n",
]  # fmt: skip


def extract(text: str, source: random.Random) -> str:
    """The header and one computation that calls no other: a whole program, if a short one."""
    bodies = [
        b for b in _BODY.findall(text) if len(b) <= LARGEST and "=%" not in b and "computation" not in b
    ]
    if len(text) <= LARGEST or not bodies:
        return text[: 4 * LARGEST]
    return "HloModule m\n\nENTRY " + source.choice(bodies).removeprefix("ENTRY ")


def damaged(texts: list[str], source: random.Random) -> str:
    """A text with a few cuts, splices, flips, repetitions, or something nested very deep."""
    text = extract(source.choice(texts), source)
    for _ in range(source.choice((1, 1, 1, 2, 3, 5))):
        text = damaged_once(text, texts, source)
    return text


def damaged_once(text: str, texts: list[str], source: random.Random) -> str:
    start = source.randrange(len(text) + 1)
    stop = min(len(text), start + int(source.expovariate(1 / 15)))
    kind = source.choices(range(10), (2, 2, 1, 1, 2, 2, 4, 8, 0.05, 0.2))[0]
    if kind == 0:
        return text[:start] + text[stop:]
    if kind == 1:
        return text[:start] + source.choice(PARTS) + text[start:]
    if kind == 2:
        return text[:stop] + text[start:stop] * source.randint(1, 3) + text[stop:]
    if kind == 3:
        other = source.choice(texts)
        at = source.randrange(len(other))
        return text[:start] + other[at : at + source.randint(1, 400)] + text[stop:]
    if kind == 4 and start < len(text):
        flipped = chr(ord(text[start]) ^ 1 << source.randrange(7))
        return text[:start] + flipped + text[start + 1 :]
    if kind == 5:
        lines = text.split("\n")
        a, b = source.randrange(len(lines)), source.randrange(len(lines))
        if source.random() < 0.5:
            lines[a], lines[b] = lines[b], lines[a]
        else:
            lines.insert(a, lines[b])
        return "\n".join(lines)
    if kind in (6, 7):
        # One word for another: of the same text, or of any; what comes of it is often still a program.
        phrase = list(_WORD.finditer(text, start, start + 400))
        others = _WORD.findall(source.choice((text, source.choice(texts)))[-4000:])
        if phrase and others:
            word = source.choice(phrase)
            return text[: word.start()] + source.choice(others) + text[word.end() :]
    if kind == 8:
        pair = source.choice(["()", "{}", "[]", "({", "/*", '"', "{{", "(", "add(", "b(", "<="])
        depth = source.choice([100, 10_000])
        closing = pair[1:] * depth if source.random() < 0.5 else ""
        return text[:start] + pair[0] * depth + closing + text[stop:]
    return text[:stop] if kind == 9 else text


def run_one(text: str, differential: bool) -> str:
    """`module` or `error`; anything else is raised."""
    module: Module | None = None
    try:
        module = parse_module(text)
    except HloParseError as error:
        if error.line < 1 or error.column < 1 or not error.message:
            raise AssertionError("an error without a place") from error
    if module is not None:
        problems = verify_module(module)
        assert not problems, problems[0]
        printed = print_module(module)
        assert print_module(parse_module(printed)) == printed, "printing again changes something"
    if differential:
        try:
            fast = read_fast(text, GrammarFallback())
        except FastPathMiss:
            return "module" if module is not None else "error"
        found = next(differences(fast, parse_by_grammar(text)), None)
        assert found is None, found
    return "module" if module is not None else "error"


def main() -> int:
    parser = argparse.ArgumentParser(description="Read damaged dumps.")
    parser.add_argument("files", nargs="*", type=Path, help="dumps to damage; the samples by default")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--differential", action="store_true", help="hold the fast path to the grammar")
    options = parser.parse_args()
    files = options.files or sorted(SAMPLES.rglob("*.hlo"))
    texts = [f.read_text(encoding="utf-8") for f in files]
    outcomes: Counter[str] = Counter()
    slowest = (0.0, 0)
    for number in range(options.seed, options.seed + options.count):
        text = damaged(texts, random.Random(number))
        start = time.process_time()
        try:
            outcomes[run_one(text, options.differential)] += 1
        except Exception as error:
            outcomes["failure"] += 1
            print(f"seed {number}: {type(error).__name__}: {str(error)[:300]}", flush=True)
        slowest = max(slowest, (time.process_time() - start, number))
        if (number + 1) % 10_000 == 0:
            print(
                f"… {number + 1}: {dict(outcomes)}, slowest {slowest[0]:.2f} s (seed {slowest[1]})",
                flush=True,
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{dict(outcomes)}, slowest {slowest[0]:.2f} s (seed {slowest[1]}), peak memory {peak:.0f} MiB")
    return 1 if outcomes["failure"] else 0


if __name__ == "__main__":
    sys.exit(main())
