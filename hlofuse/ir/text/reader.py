"""Reading a dump: the fast path where the text is ordinary, the grammar for the rest."""

from __future__ import annotations

from hlofuse.ir.collector import no_collection
from hlofuse.ir.graph import Module
from hlofuse.ir.text.fallback import GrammarFallback
from hlofuse.ir.text.fast import read_fast
from hlofuse.ir.text.patterns import FastPathMiss


@no_collection()
def parse_module(text: str, filename: str | None = None) -> Module:
    """Read a dump; raises `HloParseError` for what is not HLO (`ParseAndReturnUnverifiedModule`)."""
    try:
        module = read_fast(text, GrammarFallback())
    except FastPathMiss:
        # lark is slow to import, and an ordinary text does without.
        from hlofuse.ir.text.build import parse_by_grammar

        return parse_by_grammar(text, filename)
    module.filename = filename
    return module
