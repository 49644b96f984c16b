"""Shares of the user's functions in what a module launches."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from hlofuse.account import Account
from hlofuse.account.functions import Functions, _aligned, functions_of, functions_of_each
from hlofuse.format.paths import scopes_of
from hlofuse.ir.text.reader import parse_module
from hlofuse.reports.common.functions import changes

USER, LIBRARY = "/home/me/model.py", "/env/lib/python3.12/site-packages/optax/_src/base.py"


def module_of(kernels: Sequence[tuple[int, str, str]], backend: str = "cpu", file: str = USER) -> Account:
    """A module of negations: (elements, stack outermost first, scopes); `!name` is a frame of a library."""
    stacks = [[f for f in stack.split(">") if f] for _, stack, _ in kernels]
    names = list(dict.fromkeys(f for stack in stacks for f in stack))
    frames, body, number = [], [], 0
    for k, ((size, _, op_name), stack) in enumerate(zip(kernels, stacks, strict=True)):
        parent = 0
        for frame in stack:
            number += 1
            frames.append(
                f"{number} {{file_location_id={names.index(frame) + 1} parent_frame_id={parent + 1}}}"
            )
            parent = number
        at = f" stack_frame_id={parent}" if parent else ""
        metadata = f', metadata={{op_name="{op_name}"{at}}}' if op_name or at else ""
        body.append(
            f"p{k} = f32[{size}]{{0}} parameter({k})\n  n{k} = f32[{size}]{{0}} negate(p{k}){metadata}"
        )
    root = ", ".join(f"n{k}" for k in range(len(kernels)))
    shapes = ", ".join(f"f32[{size}]{{0}}" for size, _, _ in kernels)
    tables = "\n\n".join(
        [
            f'FileNames\n1 "{file}"\n2 "{LIBRARY}"',
            "FunctionNames\n" + "\n".join(f'{n} "{f.strip("!")}"' for n, f in enumerate(names, 1)),
            "FileLocations\n"
            + "\n".join(
                f"{n} {{file_name_id={2 if f.startswith('!') else 1} function_name_id={n} line={n} "
                f"end_line={n} column=1 end_column=2}}"
                for n, f in enumerate(names, 1)
            ),
            "StackFrames\n" + "\n".join(frames),
        ]
    )
    text = f"HloModule jit_f, is_scheduled=true\n\n{tables}\n\nENTRY main {{\n  " + "\n  ".join(body)
    return Account(parse_module(f"{text}\n  ROOT t = ({shapes}) tuple({root})\n}}\n"), backend=backend)


def shares(found: Functions) -> dict[str, int]:
    return {r.name: round(100 * r.part) for r in found.rows}


def test_a_large_function_is_split_into_what_it_calls_and_helpers_are_not() -> None:
    account = module_of(
        [
            (40, "main>step>loss>attention>linear", ""),
            (10, "main>step>loss>attention", ""),
            (20, "main>step>loss>mlp>linear", ""),
            (5, "main>step>loss>norm", ""),
            (15, "main>step>loss", ""),
            (6, "main>step>update.<locals>.<lambda>", ""),
            (4, "", ""),
        ]
    )
    found = functions_of(account)
    assert shares(found) == {
        "attention": 50, "mlp": 20, "loss itself": 15, "update": 6, "norm": 5, "": 4,
    }  # fmt: skip
    assert found.unit == "bytes"
    assert not found.directions
    assert sum(r.bytes_accessed for r in found.rows) == account.totals.cost.bytes_accessed
    assert sum(r.part for r in found.rows) == pytest.approx(1)
    assert sum(r.launches for r in found.rows) == account.totals.launches


def test_two_modules_are_split_alike_and_functions_in_another_file_are_compared_by_name() -> None:
    """`loss` is more than a third of the first module alone: split there only, its parts would seem new."""
    before = module_of([(20, "step>loss>attention", ""), (20, "step>loss>mlp", ""), (60, "step>update", "")])
    after = [(5, "step>loss>attention", ""), (20, "step>loss>mlp", ""), (75, "step>update", "")]
    assert {*shares(functions_of(before))} == {"attention", "mlp", "update"}
    for file in (USER, "/home/me/faster.py"):
        found = functions_of_each(before, module_of(after, file=file))
        assert [shares(f) for f in found] == [{"loss": 40, "update": 60}, {"loss": 25, "update": 75}]
        assert [c[:3] for c in changes(*found)] == [("update", 60 * 8, 75 * 8), ("loss", 40 * 8, 25 * 8)]


def test_measured_shares_are_of_the_kernels_that_ran() -> None:
    account = module_of([(100, "f", ""), (100, "g", ""), (10_000, "h", "")])
    times = {"n0": SimpleNamespace(total_us=6.0), "n1": SimpleNamespace(total_us=2.0)}
    account.measured = SimpleNamespace(runs=2, times=times, profile=SimpleNamespace(run_us=None))  # type: ignore[assignment]
    found = functions_of(account)
    assert (found.unit, shares(found)) == ("measured", {"f": 75, "g": 25, "h": 0})


def test_frames_that_jax_cut_or_xla_joined_lead_to_the_same_functions() -> None:
    found = functions_of(
        module_of(
            [
                (50, "main>step>loss>attention", ""),
                (20, "attention>rope", ""),  # cut at the outer end
                (20, "step>loss>step>loss>mlp", ""),  # joined at an inlined call
                (10, "main>step>Net.__call__", ""),
            ]
        )
    )
    assert shares(found) == {"attention": 70, "mlp": 20, "Net": 10}


def test_a_path_without_its_callers_gets_the_longest_that_another_has() -> None:
    aligned: Any = _aligned
    paths = [("a", "b", "c", "d"), ("b", "c"), ("b", "x"), ("d", "y"), ("z",), (), ("a",)]
    start: list[tuple[str, ...]] = [("a",), ("a",), ("a", "b", "c"), (), (), ()]
    assert aligned(paths) == [paths[0], *((*b, *p) for b, p in zip(start, paths[1:], strict=True))]
    assert aligned([("p", "q", "b"), *paths])[2:4] == [("p", "q", "b", "c"), ("p", "q", "b", "x")]
    assert aligned([("b", "a", "b", "c"), ("c", "b")])[1] == ("c", "b")  # it calls itself


def test_a_library_called_by_the_user_has_a_share_and_frames_of_libraries_between_do_not() -> None:
    found = functions_of(module_of([(60, "step>!apply>loss", ""), (40, "step>!update>!scale", "")]))
    assert shares(found) == {"loss": 60, "optax": 40}


def test_layers_of_a_library_are_told_by_their_scopes_also_where_another_function_has_some() -> None:
    """The name of the library would say nothing, and of the model's function the frames are cut."""
    flax = "step>!apply>!scan"
    pooled = [
        (70, "step>Net.__call__", "jit(step)/jvp(Net)/max"),
        (30, flax, "jit(step)/jvp(Net)/Conv_0/dot"),
    ]
    assert shares(functions_of(module_of(pooled))) == {"Net itself": 70, "Net/Conv_*": 30}
    found = functions_of(
        module_of(
            [
                (40, flax, "jit(step)/jvp(Net)/Enc_0/Attention_0/query/dot"),
                (25, flax, "jit(step)/jvp(Net)/Enc_1/Dense_0/dot"),
                (15, "step>Net.__call__", "jit(step)/jvp(Net)/add"),
                (20, "step>!update", "jit(step)/add"),
            ]
        )
    )
    assert shares(found) == {
        "Net/Enc_*/Attention_*/query": 40, "Net/Enc_*/Dense_*": 25, "optax": 20, "Net": 15,
    }  # fmt: skip


def test_scopes_where_there_are_no_frames_with_numbered_layers_together() -> None:
    found = functions_of(
        module_of(
            [
                (20, "", "jit(f)/jvp(Net)/layer_0/attn/dot_general"),
                (25, "", "jit(f)/transpose(jvp(Net))/layer_1/attn/dot_general"),
                (10, "", "jit(f)/transpose(jvp(Net))/layer_1/checkpoint/rematted_computation/attn/exp"),
                (30, "", "jit(f)/jvp(Net)/layer_1/mlp/dot_general"),
                (15, "", "jit(f)/mul"),
            ]
        )
    )
    assert shares(found) == {"Net/layer_*/attn": 55, "Net/layer_*/mlp": 30, "": 15}
    rounded = {d: round(100 * part) for d, part in found.rows[0].directions.items()}
    assert rounded == {"forward": 20, "backward": 25, "recomputed": 10}
    assert {d: round(100 * part) for d, part in found.directions.items()} == {
        "forward": 50, "backward": 25, "recomputed": 10, "other": 15,
    }  # fmt: skip


@pytest.mark.parametrize("kernels", [[], [(8, "", "")], [(8, "f", ""), (8, "f", "")]])
def test_one_function_is_no_table(kernels: list[tuple[int, str, str]]) -> None:
    assert not functions_of(module_of(kernels)).rows


@pytest.mark.parametrize(
    ("op_name", "scopes", "direction"),
    [
        ("jit(f)/jvp(a)/b/mul", ("a", "b"), "forward"),
        ("jit(f)/transpose(jvp())/mul", (), "backward"),
        ("jit(f)/transpose(jvp(a))/checkpoint/rematted_computation/b/mul", ("a", "b"), "recomputed"),
        ("jit(f)/checkpoint/rematted_computation/mul", (), "other"),
        ("jit(f)/jit(g)/f/while/mul", (), "other"),
        ("jit(f)/f/mul", ("f",), "other"),
        (None, (), "other"),
    ],
)
def test_scopes_and_direction(op_name: str | None, scopes: tuple[str, ...], direction: str) -> None:
    assert scopes_of(op_name) == (scopes, direction)
