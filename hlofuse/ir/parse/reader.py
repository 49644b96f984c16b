"""Reading a dump: the fast path where the text is ordinary, the grammar for the rest."""

from __future__ import annotations

import gc

from hlofuse.ir.module import Module
from hlofuse.ir.parse.declined import Declined
from hlofuse.ir.parse.fast import read_fast
from hlofuse.ir.parse.rungs import GrammarPieces


def parse_module(text: str, filename: str | None = None) -> Module:
    """Read a dump; raises `HloParseError` for what is not HLO (`ParseAndReturnUnverifiedModule`)."""
    collecting = gc.isenabled()
    gc.disable()  # nothing made here is garbage, and looking for it takes as long as reading
    try:
        module = read_fast(text, GrammarPieces())
    except Declined:
        from hlofuse.ir.parse.grammar import parse_module as parse_by_grammar

        return parse_by_grammar(text, filename)
    finally:
        if collecting:
            gc.enable()
    module.filename = filename
    return module
