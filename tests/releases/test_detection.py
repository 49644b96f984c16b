"""Which releases may have written a dump: by the names of files of every release, and by the text."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from hlofuse.inputs.companions import Companions
from hlofuse.inputs.release import marks_of_bytes, releases_in, span_text, written_by
from hlofuse.inputs.wire_format import BYTECODE, MLIR, PROTO
from hlofuse.ir.text.reader import parse_module
from hlofuse.releases import NAMES, Span
from ..fixtures import Case, read_cases
from ..running import Run

EMPTY = "HloModule m\n\nENTRY %e {\n  ROOT %p = f32[4]{0} parameter(0)\n}\n"
NAMES_OF_DUMPS = Path(__file__).parents[1] / "data" / "release-dump-names.txt.xz"
"""The names of the files of one module: CPU and GPU, every named release, with all dumps
(`--xla_dump_hlo_pass_re=.*`) and with `--xla_dump_to` alone. JAX compiled the module for an H100 that was
not there, so from 0.11 on nothing was compiled to code."""

# Per release: CPU with all dumps, CPU plain, GPU with all dumps, GPU plain. What is open is known to be so.
FOUND = {
    "0.4.35": ("0.4.35 or earlier", "0.4.35 or earlier", "0.4.35 or earlier", "0.5 or earlier"),
    "0.4.38": ("0.4.38", "0.4.38", "0.4.38", "0.5 or earlier"),
    "0.5.3": ("0.5", "0.5", "0.5", "0.5 or earlier"),
    "0.6.2": ("0.6 to 0.9", "0.6 to 0.9", "0.6", "0.6"),
    "0.7.2": ("0.6 to 0.9", "0.6 to 0.9", "0.7", "0.7 to 0.9"),
    "0.8.3": ("0.8 to 0.9", "0.8 to 0.9", "0.8", "0.7 to 0.9"),
    "0.9.2": ("0.8 to 0.9", "0.8 to 0.9", "0.9", "0.7 to 0.9"),
    "0.10.2": ("0.10", "0.10 or later", "0.10", "0.10 or later"),
    "0.11.1": ("0.11 or later", "0.10 or later", "0.11", "0.11 or later"),
    "0.11.2": ("0.11 or later", "0.10 or later", "0.11", "0.11 or later"),
    "0.12.0.1": ("0.12 or later", "0.10 or later", "0.12 or later", "0.11 or later"),
}


def dumps() -> dict[tuple[str, str, str], list[str]]:
    found: dict[tuple[str, str, str], list[str]] = {}
    for line in lzma.decompress(NAMES_OF_DUMPS.read_bytes()).decode().splitlines():
        if line.startswith("# "):
            backend, release, kind = line.removeprefix("# ").split()
            files = found[backend, release, kind] = []
        else:
            files.append(line)
    return found


DUMPS = dumps()


@pytest.mark.parametrize("release", NAMES)
def test_names_of_files(release: str) -> None:
    found = []
    for backend in ("cpu", "gpu"):
        for kind in ("all", "plain"):
            written = written_by(parse_module(EMPTY), DUMPS[backend, release, kind], backend=backend)
            assert release in written.releases
            found.append(written.fact.value)
    assert tuple(found) == FOUND[release]


@pytest.mark.parametrize("key", DUMPS, ids="-".join)
def test_few_files_are_never_taken_for_another_release(key: tuple[str, str, str]) -> None:
    """Each name alone, as of a narrower `--xla_dump_hlo_pass_re`."""
    backend, release, _ = key
    module = parse_module(EMPTY)
    alone = {written_by(module, [name], backend=backend).releases for name in DUMPS[key] if name[-2:] != ".o"}
    assert all(release in releases for releases in alone)


CASES = read_cases(Path(__file__).with_name("detection.hlo"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_texts(case: Case) -> None:
    """XLA's lines, of the release that the name of the case ends in."""
    written = written_by(case.module(), backend=case.options["backend"])
    assert case.name.rpartition("-")[2] in written.releases
    assert written.fact.value.replace(" ", "_") == case.options["found"]


def hlo(metadata: str = "", header: str = "", config: str = "") -> str:
    return (
        f"HloModule m{header}\n\nENTRY %e {{\n  %p = f32[4]{{0}} parameter(0)\n"
        f"  ROOT %t = f32[4]{{0}} tanh(%p){metadata}{config}\n}}\n"
    )


LAYOUT = ", entry_computation_layout={(f32[4]{0})->f32[4]{0}}"
TILES = """, backend_config={"block_level_fusion_config":{"output_tiles":[{"sizes":["4"]}]}}"""
FILES = [
    # By hand, or shortened: nothing is claimed.
    (hlo(), "", "0.11.1"),
    (hlo(config=TILES), "", "0.11.1"),
    (
        hlo(', metadata={op_type="aten__tanh" op_name="aten__tanh" source_file="m.py" source_line=3}'),
        "",
        "0.11.1",
    ),
    (hlo(', metadata={op_name="jit(f)/tanh" stack_frame_id=2}'), "0.8 or later", "0.11.1"),
    (
        hlo(', metadata={op_name="jit(f)/jit(main)/sum[axes=(1,)]" source_file="f" source_line=1}'),
        "",
        "0.11.1",
    ),
    (
        hlo(', metadata={op_name="jit(f)/tanh" source_file="f" source_line=1 source_end_line=1}'),
        "0.7 or later",
        "0.11.1",
    ),
    # The compiler's own marks outrank those of an older front end.
    (
        hlo(', metadata={op_name="jit(f)/jit(main)/tanh" source_file="f.py" source_line=3}', LAYOUT),
        "0.5 to 0.6",
        "0.6.2",
    ),
    (
        hlo(', metadata={op_name="jit(f)/jit(main)/tanh" source_file="f.py" source_line=3}', LAYOUT).replace(
            "}\n}\n", """}, backend_config={"waves_per_eu":0}\n}\n"""
        ),
        "0.10 or later",
        "0.11.1",
    ),
    # Each order of keys holds in dumps alone; marks that contradict each other show nothing.
    (hlo(header=LAYOUT, config=""", backend_config={"device_type":"A"}"""), "0.7 or later", "0.11.1"),
    (
        hlo(header=LAYOUT, config=""", backend_config={"output_tile_sizes":[],"waves_per_eu":0}"""),
        "",
        "0.11.1",
    ),
]


@pytest.mark.parametrize(("text", "span", "replayed"), FILES)
def test_a_claim_holds_for_texts_of_any_printer(text: str, span: str, replayed: str) -> None:
    written = written_by(parse_module(text), backend="cpu")
    assert written.replayed == replayed
    if written.fact.source == "default":
        assert not span
    else:
        assert written.fact.value == span


OWN_BYTES = [
    (b"func.func @main() { %0 = stablehlo.sine %a loc(#l) }", MLIR, ""),
    (b'#loc2 = loc("jit(f)/jit(main)/sin"(#loc1))', MLIR, "0.6 or earlier"),
    (b'#loc2 = loc("jit(f)/sin"(#loc1))', MLIR, "0.7 or later"),
    (b'-> (tensor<8xf32> {jax.result_info = "result"})', MLIR, "0.5 or later"),
    (b'private @shmap_body(%a: t) -> (t {jax.result_info = "[0]"})', MLIR, ""),
    (b"%1 = stablehlo.compare LT, %a, %b, SIGNED", MLIR, "0.9 or later"),
    (b"%1 = stablehlo.compare  LT, %a, %b,  SIGNED", MLIR, "0.9 or earlier"),
    (b"ML\xefR\rStableHLO_v1.7.0\0", BYTECODE, "0.4.38 or earlier"),
    (b"ML\xefR\rStableHLO_v1.16.3\0", BYTECODE, "0.11 or later"),
    (b"\n\x01m\x12\x15jit(f)/jit(main)/tanh", PROTO, "0.6 or earlier"),
    (b'\n\x01m{"waves_per_eu":0}', PROTO, "0.10 or later"),
]


@pytest.mark.parametrize(("data", "form", "span"), OWN_BYTES)
def test_a_converted_module_has_the_evidence_of_its_own_bytes(data: bytes, form: str, span: str) -> None:
    """One answer, whatever text a converter makes of it."""
    found = set()
    for text in (hlo(), hlo(', metadata={op_name="jit(f)/tanh" stack_frame_id=2}', LAYOUT)):
        module = parse_module(text)
        module.findings["release_marks"] = marks_of_bytes(data, form)
        fact = written_by(module, backend="cpu").fact
        found.add(fact.value if fact.source == "text" else "")
    assert found == {span}


def test_spans_in_words() -> None:
    assert span_text(releases_in_order(Span("0.11.2", "0.11.2"))) == "0.11.2"
    assert span_text(releases_in_order(Span("0.8", "0.11.1"))) == "0.8 to 0.11.1"
    assert span_text(("0.7.2", "0.8.3", *NAMES[-2:])) == "0.7 to 0.8 or 0.11.2 or later"


def releases_in_order(span: Span) -> tuple[str, ...]:
    return tuple(name for name in NAMES if name in releases_in(span))


STAMPS = [
    ({"schema": "hlofuse.stamp/1", "jaxlib": "0.8.3", "flags": ""}, "0.8.3", None),
    ({"schema": "hlofuse.stamp/1", "jaxlib": "0.9.0", "flags": ""}, "0.9.2", "0.9.0 is replayed as 0.9.2"),
    ({"schema": "hlofuse.stamp/1", "jaxlib": "0.4.30", "flags": ""}, "0.4.35", "XLA 0.4.30"),
    ({"schema": "hlofuse.stamp/1", "jaxlib": "0.15.1", "flags": ""}, "0.12.0.1", "0.15.1 is replayed as"),
]


@pytest.mark.parametrize(("stamp", "replayed", "note"), STAMPS, ids=lambda v: str(v)[-12:])
def test_a_stamp_counts_more_than_the_text(
    stamp: dict[str, str], replayed: str, note: str | None, tmp_path: Path, hlofuse: Run
) -> None:
    (tmp_path / "hlofuse.json").write_text(json.dumps(stamp))
    (tmp_path / "before.hlo").write_text(next(c for c in CASES if c.name == "tables-0.10.2").text)
    found = json.loads(hlofuse("explain", tmp_path / "before.hlo", "--format", "json").out)
    assert (found["xla"]["release"], found["xla"]["source"]) == (replayed, "stamp")
    assert found["identified_by"]["release"]["text"] == f"{stamp['jaxlib']} (from hlofuse.json)"
    assert [n for n in found["notes"] if note is not None and note in n] == found["notes"]
    assert bool(found["notes"]) == (note is not None)
    given = hlofuse("explain", tmp_path / "before.hlo", "--xla", "0.7", "--format", "json")
    assert json.loads(given.out)["xla"]["source"] == "asked"


def test_manifests_of_captures_are_read(tmp_path: Path) -> None:
    case = tmp_path / "softmax"
    case.mkdir()
    (case / "before.hlo").write_text(EMPTY)
    file, manifest = str(case / "before.hlo"), tmp_path / "manifest.json"
    for text in ("{", "[]", '{"version": "1"}', '{"schema": "hlofuse.capture/1", "versions": 3}'):
        manifest.write_text(text)
        stamp = Companions(file).stamp
        assert stamp is None or not stamp.jaxlib
        assert written_by(parse_module(EMPTY), (), stamp).fact.source == "default"
    versions = {"jax": "0.8.4", "jaxlib": "0.8.3"}
    manifest.write_text(json.dumps({"schema": "hlofuse.capture/1", "versions": versions, "flags": "--a=b"}))
    stamp = Companions(file).stamp
    assert stamp is not None
    assert (stamp.jaxlib, stamp.flags) == ("0.8.3", "--a=b")
    manifest.write_text(json.dumps({"jax": "0.11.1", "target": "cpu", "modules": 3}))
    stamp = Companions(file).stamp
    assert stamp is not None
    assert stamp.jaxlib == "0.11.1"
    assert Companions(None).stamp is None


OTHER = """HloModule m

ENTRY %e (p: f32[8,4]) -> f32[4,8] {
  %p = f32[8,4]{1,0} parameter(0)
  ROOT %t = f32[4,8]{1,0} transpose(%p), dimensions={1,0}, metadata={op_name="t" stack_frame_id=1}
}
"""


def test_diff_takes_the_release_of_each_side(tmp_path: Path, hlofuse: Run) -> None:
    for side, release in (("a", "0.8.3"), ("b", "0.10.2")):
        (tmp_path / side).mkdir()
        (tmp_path / side / "m.hlo").write_text(OTHER)
        stamp = {"schema": "hlofuse.stamp/1", "jaxlib": release}
        (tmp_path / side / "hlofuse.json").write_text(json.dumps(stamp))
    files = (tmp_path / "a" / "m.hlo", tmp_path / "b" / "m.hlo")
    lines = hlofuse("diff", *files, columns=200).out.splitlines()
    assert ["XLA 0.8.3" in lines[0], "XLA 0.10.2" in lines[1]] == [True, True]
    found = json.loads(hlofuse("diff", *files, "--xla-after", "0.12", "--format", "json").out)
    assert [i["xla"]["release"] for i in found["inputs"]] == ["0.8.3", "0.12.0.1"]
    assert hlofuse("diff", *files, "--xla", "newest").status == 2
