"""Reading by the grammar alone: the slow reference for every faster path. lark is imported and the parser
made on first use only. The parser's tables are stored in the user's cache directory, if that is writable."""

import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlofuse.ir.shape import Shape
from .errors import Rejected, locate, unexpected_token

if TYPE_CHECKING:
    from lark import Lark

STARTS = tuple(
    "text entry_computation plain_computation instruction shape attributes attribute literal".split()
)
"""The start rules: a whole program, and the parts that can be read alone."""


def grammar_text() -> str:
    """The grammar as shipped: inside the package, or in a checkout one folder up."""
    package = Path(__file__).parents[2]
    packaged, in_checkout = (folder / "grammars" / "hlo.lark" for folder in (package, package.parent))
    return (packaged if packaged.is_file() else in_checkout).read_text(encoding="utf-8")


def _cache_file() -> str | None:
    """The file for the parser's tables; None where it cannot be written."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(base, "hlofuse")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        return None
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    path = os.path.join(folder, f"hlo-grammar-py{version}.lark-cache")
    writable = os.access(path, os.R_OK | os.W_OK) if os.path.exists(path) else os.access(folder, os.W_OK)
    return path if writable else None


@cache
def parser() -> "Lark":
    from lark import Lark

    from .lexer import Callbacks, HloLexer

    options = {
        "parser": "lalr",
        "lexer": HloLexer,
        "start": list(STARTS),
        "keep_all_tokens": True,
        "maybe_placeholders": False,
        "transformer": Callbacks(),
    }
    text = grammar_text()
    if (file := _cache_file()) is not None:
        try:
            return Lark(text, cache=file, **options)
        except Exception:  # a damaged cache must not stop anybody
            pass
    return Lark(text, **options)


def parse_rule(text: str, start: str) -> Any:
    """The value of `text` by the rule `start`; raises `Rejected`."""
    from lark.exceptions import UnexpectedInput, UnexpectedToken

    reader = parser()
    try:
        # The callbacks make a span of every rule, no tree.
        span: Any = reader.parse(text, start=start)
        return span.value
    except UnexpectedToken as error:
        raise unexpected_token(error, text) from None
    except UnexpectedInput as error:
        raise Rejected(error.pos_in_stream or 0, "not HLO text") from None


def parse_shape(text: str) -> Shape:
    """A shape by itself; raises `HloParseError`."""
    try:
        shape: Shape = parse_rule(text, "shape")[0]
    except Rejected as error:
        raise locate(text, error, None) from None
    return shape


def parse_attribute(name: str, text: str) -> Any:
    """The typed value of an attribute, from its text; raises `HloParseError`."""
    from .tree.nodes import plain_value

    whole = f"{name}={text}"
    try:
        return plain_value(parse_rule(whole, "attribute"), whole)
    except Rejected as error:
        raise locate(whole, error, None) from None


def parse_attributes(text: str) -> dict[str, tuple[str, Any]]:
    """`, a=1, b={2}` as name to raw text and typed value; raises `HloParseError`."""
    from .tree.nodes import plain_value

    try:
        nodes = parse_rule(text, "attributes")
        out = {}
        for node in nodes:
            if node.name in out:
                raise Rejected(node.key, f"the attribute {node.name} is given twice")
            out[node.name] = (text[node.start : node.end], plain_value(node, text))
    except Rejected as error:
        raise locate(text, error, None) from None
    return out
