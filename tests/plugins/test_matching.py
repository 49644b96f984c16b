"""Where a pattern stands: as written, renamed, reordered, with operands exchanged; and where it does not."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlofuse.inputs import load
from hlofuse.ir.errors import HloParseError
from hlofuse.ir.graph import Computation
from hlofuse.ir.text.printer import print_computation
from hlofuse.plugins.pattern import Matcher, Pattern, parse_pattern
from hlofuse.plugins.pattern.match import COMMUTATIVE

from .patterns import matches, module_of

ROOT = Path(__file__).parents[2]
UNARY = ("negate", "exponential", "tanh")
BINARY = ("add", "multiply", "maximum", "subtract", "divide")


@st.composite
def programs(draw: st.DrawFn) -> list[str]:
    """Lines of a computation of some operations, all of which reach the root."""
    count = draw(st.integers(1, 3))
    lines = [f"p{k} = f32[8] parameter({k})" for k in range(count)]
    names = [f"p{k}" for k in range(count)]
    unused = list(names)
    for k in range(draw(st.integers(0, 7))):
        opcode = draw(st.sampled_from(UNARY + BINARY))
        operands = [draw(st.sampled_from(names)) for _ in range(1 if opcode in UNARY else 2)]
        lines.append(f"x{k} = f32[8] {opcode}({', '.join(operands)})")
        unused = [n for n in unused if n not in operands] + [f"x{k}"]
        names.append(f"x{k}")
    last = "unused0" if len(unused) > 1 else ""
    for k, name in enumerate(unused[1:]):
        lines.append(f"unused{k} = f32[8] divide({unused[0] if k == 0 else f'unused{k - 1}'}, {name})")
        last = f"unused{k}"
    lines.append(f"ROOT end = f32[8] negate({last or unused[0]})")
    return lines


def renamed(lines: list[str]) -> list[str]:
    return [re.sub(r"\b(p|x|unused|end)(\d*)\b", r"other.\1\2", line) for line in lines]


def shuffled(lines: list[str], seed: int) -> list[str]:
    """Another order in which everything is defined before it is used."""
    rest, done, out = list(lines), set[str](), []
    chance = random.Random(seed)
    while rest:
        ready = [x for x in rest if all(n in done for n in _operands(x))]
        line = chance.choice(ready)
        rest.remove(line)
        out.append(line)
        done.add(line.removeprefix("ROOT ").split(" = ")[0])
    return out


def exchanged(lines: list[str]) -> list[str]:
    return [
        re.sub(r"\((\w+), (\w+)\)", r"(\2, \1)", line) if _opcode(line) in COMMUTATIVE else line
        for line in lines
    ]


def _opcode(line: str) -> str:
    found = re.search(r"\] ([\w-]+)\(", line)
    assert found is not None
    return found[1]


def _operands(line: str) -> list[str]:
    return re.findall(r"[a-z]+\d+", line.split("(", 1)[1]) if "parameter" not in line else []


@given(programs(), st.integers(0, 9))
def test_a_computation_is_a_pattern_of_itself(lines: list[str], seed: int) -> None:
    pattern = "\n".join(lines)
    for copy in (lines, renamed(lines), shuffled(lines, seed), exchanged(lines)):
        found = matches(pattern, module_of("\n".join(copy)), through=())
        assert found, copy
        assert found[-1].root.is_root
        assert found[-1].size == len(lines) - pattern.count("parameter(")


@given(programs(), st.data())
def test_with_one_operation_changed_it_is_not(lines: list[str], data: st.DataObject) -> None:
    number = data.draw(st.sampled_from([k for k, x in enumerate(lines) if "parameter" not in x]))
    changed = list(lines)
    changed[number] = re.sub(
        r"\] [\w-]+\(", "] cosine(" if "," not in lines[number] else "] power(", lines[number]
    )
    found = matches("\n".join(lines), module_of("\n".join(changed)), through=())
    assert not [m for m in found if m.root.is_root]


def fused_computations() -> list[tuple[str, str, Computation]]:
    found = []
    for path in sorted((ROOT / "samples").rglob("after.hlo")):
        for computation in load(path).computations:
            if computation.fusion is not None:
                found.append((f"{path.parent.relative_to(ROOT)} {computation.name}", str(path), computation))
    return found


def unless_too_deep(text: str) -> Pattern | None:
    try:
        return parse_pattern(text)
    except HloParseError as error:
        if "at most 200 operations deep" in error.message:
            return None
        raise


def test_every_fusion_of_the_samples_is_a_pattern_of_itself() -> None:
    """Texts as XLA writes them: layouts, metadata, called computations, whatever the operations are."""
    bodies, deep = fused_computations(), 0
    assert len(bodies) > 80
    for where, _, body in bodies:
        regions = {c for x in body for c in x.called_computations}
        text = "".join(print_computation(c) + "\n" for c in sorted(regions, key=lambda c: c.name))
        text += print_computation(body)
        pattern = unless_too_deep(text)
        deep += pattern is None
        assert pattern is None or any(True for _ in Matcher(pattern).at(body.root)), where
    assert deep <= 2, "random numbers of Cartpole"


ATTENDED = """
a = f32[4,8] parameter(0)
b = f32[4,8] parameter(1)
s = f32[4,8] add(a, b)
e = f32[4,8] exponential(s)
ROOT r = f32[4,8] multiply(e, a)
"""


@pytest.mark.parametrize(
    "pattern",
    [
        "x = parameter(0)\ny = parameter(1)\ne = exponential(t)\nt = add(x, y)\nr = multiply(y, e)",
        "x = T[R,?] parameter(0)\ny = T[...] parameter(1)\nt = add(x, y)\nr = exponential(t)",
        "x = parameter(0)\nr = exponential(x)",
        "x = f32[...,8] parameter(0)\nr = f32[4,...] exponential(x)",
        "x = parameter(0)\nr = tanh(x)\nr = exponential(x)",
        "x = parameter(0)\ny = parameter(1)\nt = divide(x, y)\nt = add(x, y)\nr = exponential(t)",
        "x = parameter(0)\nu = negate(x)\nu = x\nr = exponential(u)",
    ],
)
def test_what_is_not_written_may_be_anything(pattern: str) -> None:
    assert len(matches(pattern, module_of(ATTENDED))) == 1


@pytest.mark.parametrize(
    "pattern",
    [
        "x = f16[...] parameter(0)\nr = exponential(x)",
        "x = parameter(0)\nr = f32[8,...] exponential(x)",
        "x = T[R,R] parameter(0)\nr = exponential(x)",
        "x = parameter(0)\nr = f32[4,8]{0,1} exponential(x)",
        "x = parameter(0)\nt = add(x, x)\nr = exponential(t)",
        "x = parameter(0)\nr = exponential(x), made_up=1",
        "x = parameter(0)\ny = constant(1)\nr = add(x, y)",
    ],
)
def test_what_is_written_must_be_so(pattern: str) -> None:
    assert matches(pattern, module_of(ATTENDED)) == []


def test_what_others_read_is_not_taken_from_them() -> None:
    pattern = "x = parameter(0)\ny = parameter(1)\ns = add(x, y)\nr = exponential(s)"
    assert len(matches(pattern, module_of(ATTENDED))) == 1
    assert matches(pattern, module_of(ATTENDED.replace("multiply(e, a)", "multiply(e, s)"))) == []


def test_constants_and_iotas_may_be_shared() -> None:
    module = module_of(
        """
        x = f32[8] parameter(0)
        one = f32[] constant(1)
        ones = f32[8] broadcast(one), dimensions={}
        a = f32[8] add(x, ones)
        e = f32[8] exponential(a)
        ROOT r = f32[8] multiply(e, ones)
        """
    )
    pattern = "x = parameter(0)\none = constant(1.0)\nones = broadcast(one), dimensions={}\n"
    pattern += "a = add(ones, x)\nr = exponential(a)"
    assert [m.root.name for m in matches(pattern, module)] == ["e"]
    assert [x.name for x in matches(pattern, module)[0].inside] == ["a", "e"]
    assert matches(pattern.replace("1.0", "2"), module) == []


def test_operations_of_one_operand_may_stand_between() -> None:
    module = module_of(
        """
        x = f32[4,2] parameter(0)
        n = f32[4,2] negate(x)
        b = f32[8] bitcast(n)
        c = f16[8] convert(b)
        ROOT r = f16[8] exponential(c)
        """
    )
    pattern = "x = parameter(0)\nn = negate(x)\nr = exponential(n)"
    assert [m.size for m in matches(pattern, module)] == [4]
    assert matches(pattern, module, through=("bitcast",)) == []


def test_dimensions_count_from_either_end() -> None:
    add = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n"
    module = module_of(
        """
        x = f32[2,3,4] parameter(0)
        z = f32[] constant(0)
        s = f32[2,3] reduce(x, z), dimensions={2}, to_apply=add
        ROOT b = f32[2,3,4] broadcast(s), dimensions={0,1}
        """,
        add.replace("{ a", "{\na"),
    )
    text = "x = parameter(0)\nz = constant(0)\ns = reduce(x, z), dimensions={%s}, to_apply=%s\n"
    text += "b = broadcast(s), dimensions={%s}"
    for first, last in (("2", "0,1"), ("-1", ":-1"), ("-1:", "0,-2")):
        assert len(matches(text % (first, "add", last), module)) == 1
    for first, region, last in (("1", "add", ":"), ("-1", "maximum", ":-1"), ("-1", "add", ":-2")):
        assert matches(text % (first, region, last), module) == []


GEMM = """
gemm {
  p = f32[8,4] parameter(0)
  w = f32[4,8] parameter(1)
  d = f32[8,8] dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = f32[8,8] tanh(d)
}
"""


def test_fusions_are_seen_through() -> None:
    module = module_of(
        """
        a = f32[8,4] parameter(0)
        n = f32[8,4] negate(a)
        b = f32[4,8] parameter(1)
        f = f32[8,8] fusion(n, b), kind=kCustom, calls=gemm, backend_config={"k":{"kind":"triton","x":1}}
        ROOT r = f32[8,8] exponential(f)
        """,
        GEMM,
    )
    whole = (
        "a = parameter(0)\nb = parameter(1)\nn = negate(a)\nd = dot(n, b)\nt = tanh(d)\nr = exponential(t)"
    )
    found = matches(whole, module)
    assert [x.name for x in found[0].inside] == ["n", "f", "r"]
    assert [v.instruction.opcode for v in found[0].values] == ["exponential", "tanh", "dot", "negate"]
    # What a fusion has only inside is no array that a kernel could read.
    assert matches("t = parameter(0)\nd = tanh(t)\nr = exponential(d)", module) == []
    # The fusion itself can be named as well, with as much of its config as matters.
    config = "a = parameter(0)\nb = parameter(1)\n"
    config += 'f = fusion(a, b), kind=kCustom, backend_config={"k":{"kind":"%s"}}'
    assert len(matches(config % "triton", module)) == 1
    assert matches(config % "cudnn", module) == []


def test_the_deepest_pattern_is_matched() -> None:
    text = "x0 = f32[8] parameter(0)\n" + "\n".join(f"x{k + 1} = f32[8] tanh(x{k})" for k in range(199))
    assert [m.size for m in matches(text, module_of(text))] == [199]


def test_what_cannot_match_is_known_soon() -> None:
    """A tree of additions, whose operands can be exchanged everywhere, with one leaf that is nowhere."""
    lines, level = [f"p{k} = f32[8] parameter({k})" for k in range(4)], [f"p{k % 4}" for k in range(256)]
    holes = [f"h{k} = parameter({k})" for k in range(32)] + ["never = cosine(h31)"]
    wanted = [f"h{k}" for k in range(31)] + ["never"]
    assert (
        matches(
            "\n".join(holes + tree("m", "", wanted)),
            module_of("\n".join(lines + tree("x", "f32[8] ", level))),
        )
        == []
    )


def tree(name: str, shape: str, level: list[str]) -> list[str]:
    lines: list[str] = []
    while len(level) > 1:
        pairs = list(zip(level[::2], level[1::2], strict=True))
        level = [f"{name}{len(lines) + k}" for k in range(len(pairs))]
        lines += [f"{new} = {shape}add({a}, {b})" for new, (a, b) in zip(level, pairs, strict=True)]
    return lines


def test_library_calls_can_be_told_apart() -> None:
    module = module_of(
        """
        a = f32[8,4] parameter(0)
        b = f32[4,8] parameter(1)
        c = (f32[8,8], s8[9]) custom-call(a, b), custom_call_target="__gemm", backend_config={"g":{"beta":0}}
        g = f32[8,8] get-tuple-element(c), index=0
        ROOT r = f32[8,8] tanh(g)
        """
    )
    text = 'a = parameter(0)\nb = parameter(1)\nc = custom-call(a, b), custom_call_target="%s"%s\n'
    text += "g = get-tuple-element(c), index=0\nr = tanh(g)"
    for target, config, count in (
        ("__gemm", "", 1),
        ("__gemm", ', backend_config={"g":{"beta":0}}', 1),
        ("__gemm", ', backend_config={"g":{"beta":1}}', 0),
        ("__matmul", "", 0),
    ):
        assert len(matches(text % (target, config), module)) == count
