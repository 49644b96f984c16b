"""Modules in other forms than HLO text (StableHLO as text or bytecode, HLO protos), lowered by jaxlib.

jaxlib is used for nothing else, and only where such an input is given.
"""

from __future__ import annotations

import re

from hlofuse.format.escape import printable
from hlofuse.inputs.wire_format import module_proto
from hlofuse.ir.errors import HlofuseError

MLIR, BYTECODE, PROTO = "StableHLO text", "StableHLO bytecode", "an HLO proto"
_BYTECODE_MAGIC = b"ML\xefR"
_MLIR_START = re.compile(
    rb"\s*(?:(?://[^\n]*\n|#[\w-]+ ?=[^\n]*\n)\s*)*(?:(?:builtin\.)?module\b(?! \w|,)|func\.func\b)"
)


def foreign_form(data: bytes) -> str | None:
    """MLIR, BYTECODE or PROTO; None for what is not known to be one of them."""
    if data.startswith(_BYTECODE_MAGIC):
        return BYTECODE
    head = data[:65536]
    if _MLIR_START.match(head) and not head.lstrip().startswith(b"HloModule"):
        return MLIR
    if head[:1] == b"\n":  # field 1 of a proto: the name of a module, or a module
        try:
            module_proto(data)
        except (ValueError, IndexError):
            return None
        return PROTO
    return None


def hlo_text(data: bytes, form: str, name: str) -> str:
    """HLO text of a module in another form; HlofuseError without jaxlib, or where jaxlib refuses it.

    name: what to call the input in a message.
    """
    try:
        import jaxlib._hlo
        import jaxlib._jax
    except ImportError:
        raise HlofuseError(
            f"{printable(name)} is {form}, which jaxlib lowers to HLO text, and jaxlib is not installed:"
            ' pip install "hlofuse[capture]"'
        ) from None
    try:
        if form == PROTO:
            computation = jaxlib._hlo.XlaComputation(module_proto(data))
        else:
            computation = jaxlib._jax.mlir.mlir_module_to_xla_computation(data, False, False)
        return str(computation.get_hlo_module().to_string())
    except Exception as error:
        message = printable(str(error).strip().split("\n")[0][:300])
        raise HlofuseError(f"{printable(name)} is {form} that jaxlib does not read: {message}") from None
