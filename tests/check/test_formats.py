"""Every format: what it says, that it is well formed, and that a dump's text stays text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from hlofuse.cli.common.output import rendered
from hlofuse.reports.check import Check, Code, Finding, Level, Measured, check_modules
from hlofuse.reports.check.baseline import Budget
from hlofuse.reports.check.ci import check_github, check_junit, check_markdown, check_sarif
from hlofuse.reports.check.model import ModuleCheck, RefusedEdge, Where, check_json
from hlofuse.reports.check.text import print_check
from hlofuse.reports.common.model import Place
from ..running import Golden
from .profiles import kernel, profile

EVIL = "\x1b[31m]0;t\x07‮`|<script>[x](y)\r\n::error::%,:&\"'"
FORMS = ("text", "json", "markdown", "github", "sarif", "junit")


def written(check: Check, form: str, root: Path = Path()) -> str:
    return {
        "text": lambda: rendered(lambda console: print_check(check, console), "never"),
        "json": lambda: json.dumps(check_json(check), indent=2) + "\n",
        "markdown": lambda: check_markdown(check),
        "github": lambda: check_github(check, root),
        "sarif": lambda: json.dumps(check_sarif(check, "1.2.3"), indent=2) + "\n",
        "junit": lambda: check_junit(check),
    }[form]()


def refused_edge(word: str = "") -> RefusedEdge:
    place = Where(f"m.py{word}", 4, f"f{word}")
    return RefusedEdge(
        "PF001",
        f"A title{word}",
        f"Advice{word}",
        Place(f"tanh.1{word}"),
        Place(f"add{word}"),
        frozenset(),
        place,
        4096,
        1.5,
    )


def broken(word: str = "") -> Check:
    """A module with something of every kind."""
    name = f"jit_f{word}"
    where = Where(f"m.py{word}", 3, f"f{word}")
    now = profile(f"m.py:3 f | kLoop: add{word}", f"m.py:4 f | kLoop: tanh{word}", name=name, us=2.5)
    base = profile(f"m.py:3 f | kLoop: add, tanh{word}", name=name, us=1.0)
    findings = (
        Finding(Code.MORE_KERNELS, Level.ERROR, name, "1 kernel → 2", where),
        Finding(
            Code.SPLIT,
            Level.ERROR,
            name,
            "1 kernel became 2",
            where,
            base.kernels,
            now.kernels,
            (refused_edge(word),),
        ),
        Finding(Code.CHANGED, Level.WARNING, name, "1 kernel with changed contents"),
        Finding(Code.NEW, Level.NOTE, name, "1 kernel more", now=(kernel(f"n.py | copy{word}"),)),
    )
    missing = Finding(Code.MODULE_MISSING, Level.NOTE, f"jit_g{word}", "in the baseline, not in the input")
    fine = ModuleCheck(profile("m.py:1 h | copy", name="jit_h"), "h.hlo", None, ())
    return Check((fine, ModuleCheck(now, f"f.hlo{word}", base, findings)), (missing,), "b.toml")


@pytest.mark.parametrize("form", FORMS)
def test_what_each_says(golden: Golden, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "m.py").touch()
    golden(f"check/{form}.txt", written(broken(), form, tmp_path))


@pytest.mark.parametrize("form", FORMS)
def test_names_of_a_dump_are_data(form: str) -> None:
    for line in written(broken(EVIL), form).split("\n"):
        assert line.isprintable(), line


def test_a_workflow_command_is_one_line_and_names_cannot_make_another() -> None:
    text = check_github(broken(EVIL), Path())
    *commands, verdict, end = text.split("\n")
    assert (verdict, end) == ("hlofuse check: 1 of 2 modules failed", "")
    assert len(commands) == 5
    for command in commands:
        _, properties, message = command.split("::", 2)
        assert properties.split(" ", 1)[0] in ("error", "warning", "notice")
        for part in properties.split(" ", 1)[1].split(","):
            assert part.partition("=")[0] in ("file", "line", "title")
        assert "%25" in message or "%" not in message


def test_properties_of_a_workflow_command_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "a,b:c%.py").touch()
    finding = Finding(Code.NEW, Level.ERROR, "m", "100% more", Where("a,b:c%.py", 3))
    text = check_github(Check((ModuleCheck(profile(), "m.hlo", None, (finding,)),)), tmp_path)
    assert text.startswith("::error file=a%2Cb%3Ac%25.py,line=3,title=hlofuse%3A A kernel")
    assert "::m: 100%25 more\n" in text


def test_a_file_outside_the_project_is_told_in_words(tmp_path: Path) -> None:
    text = check_github(broken(), tmp_path)
    assert "file=" not in text
    assert "::m.py:3 f: jit_f: 1 kernel → 2\n" in text


def test_junit_is_xml_with_a_case_for_each_module() -> None:
    suite = ElementTree.fromstring(check_junit(broken(EVIL)).encode())[0]
    cases = suite.findall("testcase")
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1") == (str(len(cases)), "1")
    assert [len(c.findall("failure")) for c in cases] == [0, 1, 0]
    failure = cases[1][0]
    assert failure.get("message") == "1 kernel → 2; 1 kernel became 2"
    assert "PF001 refused" in str(failure.text)


def test_markdown_shows_names_as_plain_words() -> None:
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(check_markdown(broken(EVIL)))
    inner = [c for t in tokens for c in t.children or []]
    assert not [t for t in [*tokens, *inner] if t.type in ("html_block", "link_open", "image")]
    assert {t.content for t in inner if t.type == "html_inline"} <= {"<!-- -->"}


@pytest.mark.parametrize("most", [1_200, 3_000, 20_000, 1_000_000])
def test_markdown_stays_within_the_size_and_says_what_is_cut(most: int) -> None:
    modules = [m for n in range(300) for m in broken(f"é{n}").modules]
    text = check_markdown(Check(tuple(modules)), most)
    assert len(text.encode()) <= most
    assert text.count("❌ |") <= 300
    cut = "Truncated to fit a job summary" in text
    assert cut == (text.count("\n### ") < 300)
    if cut and most > 3_000:
        assert "finding" in text.rsplit("**", 1)[1]


def test_one_run_of_a_command_may_be_cut_at_github_s_own_limit() -> None:
    from hlofuse.reports.check.ci import MOST_BYTES

    assert MOST_BYTES < 1024 * 1024


def test_sarif_has_what_code_scanning_asks_for() -> None:
    log = check_sarif(broken(), "1.2.3")
    assert_sarif(log)
    split = log["runs"][0]["results"][1]
    place = split["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("m.py", 3)
    assert split["relatedLocations"][0]["message"]["text"] == "PF001: tanh.1"
    assert_sarif(check_sarif(broken(EVIL), "1.2.3"))
    assert_sarif(check_sarif(Check(()), "1.2.3"))


def test_a_fingerprint_stays_where_lines_move() -> None:
    def prints(line: int) -> list[str]:
        finding = Finding(
            Code.NEW, Level.ERROR, "m", "x", Where("m.py", line, "f"), now=(kernel("? | copy"),)
        )
        log = check_sarif(Check((ModuleCheck(profile(), "m.hlo", None, (finding,)),)), "1")
        return [r["partialFingerprints"]["hlofuse/v1"] for r in log["runs"][0]["results"]]

    assert prints(3) == prints(30)


def assert_sarif(log: dict[str, Any]) -> None:
    """The parts of SARIF 2.1.0's schema that these documents use: names, types, and what must be there."""
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    for run in log["runs"]:
        assert set(run) == {"tool", "columnKind", "results"}
        assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
        rules = run["tool"]["driver"]["rules"]
        assert run["tool"]["driver"]["name"]
        assert len({r["id"] for r in rules}) == len(rules), "unique, by the schema"
        for r in run["results"]:
            assert rules[r["ruleIndex"]]["id"] == r["ruleId"]
            assert r["level"] in ("none", "note", "warning", "error")
            assert r["message"]["text"]
            assert all(isinstance(v, str) for v in r["partialFingerprints"].values())
            for where in [*r["locations"], *r.get("relatedLocations", [])]:
                assert set(where) <= {"id", "physicalLocation", "logicalLocations", "message"}
                if "physicalLocation" in where:
                    uri = where["physicalLocation"]["artifactLocation"]["uri"]
                    assert uri.isascii(), "a URI reference"
                    assert " " not in uri
                    assert where["physicalLocation"].get("region", {"startLine": 1})["startLine"] >= 1


def test_a_budget_names_the_pairs_with_most_at_stake() -> None:
    pairs = [refused_edge(str(n)) for n in range(9)]
    check = check_modules(
        [Measured(profile("m.py:1 f | copy"), "m.hlo", lambda: pairs)], budgets=[Budget("m*", kernels=0)]
    )
    (finding,) = check.findings
    assert (finding.code, finding.message) == (Code.MAX_KERNELS, "1 kernel, 0 allowed")
    assert finding.refused_edges == tuple(pairs[:5])
    assert finding.where == pairs[0].where
