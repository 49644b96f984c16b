"""Texts put together at random of what rules look for: names and places of the framework, calls, indices,
products, converts, fusions."""

from __future__ import annotations

from random import Random

from .lists import HEAD, places_in_source

TABLES = places_in_source(("f", 1, 1, 40), ("f", 1, 5, 20), ("g", 7, 3, 9), ("g", 7, 3, 30))

_FUNCTIONS = """
%gemm (x: f32[4,4], y: f32[4,4]) -> f32[4,4] {
  %x = f32[4,4]{1,0} parameter(0)
  %y = f32[4,4]{1,0} parameter(1)
  %two = f32[] constant(2)
  %twos = f32[4,4]{1,0} broadcast(%two), dimensions={}
  %scaled = f32[4,4]{1,0} multiply(%x, %twos), metadata={op_name="jit(f)/mul"}
  %also = f32[4,4]{1,0} multiply(%y, %twos), metadata={op_name="jit(f)/mul"}
  ROOT %dot = f32[4,4]{1,0} dot(%scaled, %also), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%softmax (z: f32[4,4]) -> f32[4,4] {
  %z = f32[4,4]{1,0} parameter(0)
  %one = f32[] constant(2)
  %ones = f32[4,4]{1,0} broadcast(%one), dimensions={}
  ROOT %shifted = f32[4,4]{1,0} add(%z, %ones), metadata={op_name="jit(f)/add"}
}

%sliced (w: f32[4,4], i: s32[], j: s32[]) -> f32[1,1] {
  %w = f32[4,4]{1,0} parameter(0)
  %i = s32[] parameter(1)
  %j = s32[] parameter(2)
  %k = s32[] add(%i, %j)
  ROOT %piece = f32[1,1]{1,0} dynamic-slice(%w, %k, %i), dynamic_slice_sizes={1,1}
}

%written (v: f32[4,4], u: f32[1,1], l: s32[]) -> f32[4,4] {
  %v = f32[4,4]{1,0} parameter(0)
  %u = f32[1,1]{1,0} parameter(1)
  %l = s32[] parameter(2)
  ROOT %whole = f32[4,4]{1,0} dynamic-update-slice(%v, %u, %l, %l)
}
"""

_SCOPES = (
    "",
    "jit(g)/",
    "jit(h)/jit(g)/",
    "jvp(jit(g))/",
    "transpose(jvp(jit(g)))/",
    "while/body/eval_jaxpr/",
    "while/body/eval_jaxpr/jit(g)/",
    "cond/branch_0_fun/",
    "cond/branch_1_fun/",
)
_OPERATIONS = (
    "add",
    "broadcast_in_dim",
    "cond",
    "convert_element_type",
    "div",
    "dot_general",
    "gather",
    "max",
    "mul",
    "reduce_max",
    "reduce_precision",
    "reduce_sum",
    "rem",
    "scatter",
    "select_n",
    "top_k",
)
_MATRIX, _VECTOR, _FLAT = "f32[4,4]{1,0}", "f32[4]{0}", "f32[16]{0}"
_NARROW, _EIGHT = "bf16[4,4]{1,0}", "f8e4m3fn[4,4]{1,0}"
_NUMBER, _WORD, _INDEX, _ONE_INDEX = "f32[]", "u32[4,4]{1,0}", "s32[]", "s32[1]{0}"
_SIGN, _SIGNS, _ELEMENT = "pred[]", "pred[4,4]{1,0}", "f32[1,1]{1,0}"
_HALF, _STATE = "f32[2,4]{1,0}", "(f32[4,4]{1,0}, f32[4,4]{1,0}, s32[])"

_KINDS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    (_MATRIX, "add", (_MATRIX, _MATRIX), ""),
    (_MATRIX, "multiply", (_MATRIX, _MATRIX), ""),
    (_MATRIX, "divide", (_MATRIX, _MATRIX), ""),
    (_MATRIX, "power", (_MATRIX, _MATRIX), ""),
    (_MATRIX, "maximum", (_MATRIX, _MATRIX), ""),
    (_MATRIX, "clamp", (_MATRIX, _MATRIX, _MATRIX), ""),
    (_MATRIX, "negate", (_MATRIX,), ""),
    (_MATRIX, "convert", (_NARROW,), ""),
    (_MATRIX, "convert", (_EIGHT,), ""),
    (_NARROW, "convert", (_MATRIX,), ""),
    (_EIGHT, "convert", (_MATRIX,), ""),
    (_NARROW, "negate", (_NARROW,), ""),
    (_MATRIX, "broadcast", (_NUMBER,), "dimensions={}"),
    (_MATRIX, "broadcast", (_VECTOR,), "dimensions={0}"),
    (_MATRIX, "broadcast", (_VECTOR,), "dimensions={1}"),
    (_NARROW, "broadcast", (_NUMBER,), "dimensions={}"),
    (_MATRIX, "reverse", (_MATRIX,), "dimensions={0}"),
    (_MATRIX, "transpose", (_MATRIX,), "dimensions={1,0}"),
    (_MATRIX, "bitcast", (_MATRIX,), ""),
    (_MATRIX, "copy", (_MATRIX,), ""),
    (_MATRIX, "dot", (_MATRIX, _MATRIX), "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    (_MATRIX, "fusion", (_MATRIX, _MATRIX), "kind=kCustom, calls=%gemm"),
    (_MATRIX, "fusion", (_MATRIX,), "kind=kCustom, calls=%softmax"),
    (_MATRIX, "fusion", (_MATRIX, _ELEMENT, _INDEX), "kind=kCustom, calls=%written"),
    (_ELEMENT, "fusion", (_MATRIX, _INDEX, _INDEX), "kind=kCustom, calls=%sliced"),
    (_MATRIX, "get-tuple-element", (_STATE,), "index=0"),
    (_MATRIX, "get-tuple-element", (_STATE,), "index=1"),
    (_INDEX, "get-tuple-element", (_STATE,), "index=2"),
    (_MATRIX, "concatenate", (_HALF, _HALF), "dimensions={0}"),
    (_HALF, "slice", (_MATRIX,), "slice={[0:2], [0:4]}"),
    (_MATRIX, "select", (_SIGNS, _MATRIX, _MATRIX), ""),
    (_MATRIX, "dynamic-update-slice", (_MATRIX, _ELEMENT, _INDEX, _INDEX), ""),
    (_ELEMENT, "dynamic-slice", (_MATRIX, _INDEX, _INDEX), "dynamic_slice_sizes={1,1}"),
    (_ELEMENT, "bitcast", (_NUMBER,), ""),
    (_ELEMENT, "add", (_ELEMENT, _ELEMENT), ""),
    (_NUMBER, "bitcast", (_ELEMENT,), ""),
    (_NUMBER, "multiply", (_NUMBER, _NUMBER), ""),
    (_VECTOR, "reduce", (_MATRIX, _NUMBER), "dimensions={1}, to_apply=%sum"),
    (_VECTOR, "reduce", (_MATRIX, _NUMBER), "dimensions={0}, to_apply=%sum"),
    (_FLAT, "bitcast", (_MATRIX,), ""),
    (_NUMBER, "reduce", (_FLAT, _NUMBER), "dimensions={0}, to_apply=%sum"),
    (_VECTOR, "add", (_VECTOR, _VECTOR), ""),
    (_VECTOR, "bitcast", (_VECTOR,), ""),
    (_INDEX, "add", (_INDEX, _INDEX), ""),
    (_INDEX, "select", (_SIGN, _INDEX, _INDEX), ""),
    (_ONE_INDEX, "bitcast", (_INDEX,), ""),
    (_SIGN, "compare", (_INDEX, _INDEX), "direction=LT"),
    (_SIGNS, "compare", (_MATRIX, _MATRIX), "direction=LT"),
    (_SIGNS, "broadcast", (_SIGN,), "dimensions={}"),
    (_SIGNS, "and", (_SIGNS, _SIGNS), ""),
    (_WORD, "add", (_WORD, _WORD), ""),
    (_WORD, "xor", (_WORD, _WORD), ""),
    (_WORD, "or", (_WORD, _WORD), ""),
    (_WORD, "shift-left", (_WORD, _WORD), ""),
    (_WORD, "shift-right-logical", (_WORD, _WORD), ""),
)
"""What comes of operands of which kinds, with which attributes."""

_GIVEN = (_MATRIX, _MATRIX, _VECTOR, _NARROW, _EIGHT, _INDEX, _WORD, _STATE)
_CONSTANTS = ((_NUMBER, "2"), (_NUMBER, "0.5"), (_INDEX, "0"), (_INDEX, "4"))


def random_program(random: Random, *, size: int = 50) -> str:
    """A program of up to `size` operations, the root's operands being what nobody else reads."""
    lines: list[str] = []
    known: dict[str, list[str]] = {}

    def make(shape: str, opcode: str, inside: str, more: str = "") -> None:
        name = f"{_root(random, opcode)}.{len(lines)}"
        lines.append(f"  %{name} = {shape} {opcode}({inside}){more}{_metadata(random)}")
        known.setdefault(shape, []).append(name)

    for number, shape in enumerate(_GIVEN):
        make(shape, "parameter", str(number))
    for shape, value in _CONSTANTS:
        make(shape, "constant", value)
    for _ in range(size):
        shape, opcode, operands, attributes = random.choice(_KINDS)
        if all(o in known for o in operands):
            inside = ", ".join(f"%{_one_of(known[o], random)}" for o in operands)
            make(shape, opcode, inside, f", {attributes}" if attributes else "")
    text = "\n".join(lines)
    results = [
        (shape, name)
        for shape, names in known.items()
        for name in names
        if not any(f"%{name}{end}" in text for end in ",)")
    ]
    shapes, names = ", ".join(s for s, _ in results), ", ".join(f"%{n}" for _, n in results)
    lines.append(f"  ROOT %tuple = ({shapes}) tuple({names})")
    head = HEAD.replace("\n", f"\n{TABLES}\n", 1)
    return f"{head}{_FUNCTIONS}\nENTRY %main {{\n" + "\n".join(lines) + "\n}\n"


def _one_of(names: list[str], random: Random) -> str:
    """One of the first few more often, so that these are read by many."""
    return random.choice(names[: random.choice((1, 2, 4))] if random.random() < 0.6 else names)


def _root(random: Random, opcode: str) -> str:
    return random.choice(_OPERATIONS) if random.random() < 0.4 else opcode


def _metadata(random: Random) -> str:
    fields = []
    if random.random() < 0.7:
        fields.append(f'op_name="jit(f)/{random.choice(_SCOPES)}{random.choice(_OPERATIONS)}"')
    if random.random() < 0.7:
        fields.append(f"stack_frame_id={random.choice((1, 2, 3, 4, 4, 99))}")
    return f", metadata={{{' '.join(fields)}}}" if fields else ""
