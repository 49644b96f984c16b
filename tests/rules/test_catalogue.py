"""The catalogue itself: complete entries, stable codes, one place for each knob."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from hlofuse.ir.errors import HlofuseError
from hlofuse.rules import catalogue as catalogue_module
from hlofuse.rules.catalogue import catalogue, family_of, page_file, register
from hlofuse.rules.pages import FAMILIES, rule_markdown, rules_json, sections
from hlofuse.rules.settings import AS_XLA, parse_settings

RULES = catalogue()
RULES_FOLDER = Path(catalogue_module.__file__).parent


@pytest.mark.parametrize("code", RULES)
def test_an_entry_says_all_that_a_page_needs(code: str) -> None:
    rule = RULES[code]
    assert re.fullmatch(r"[A-Z]{2,3}\d{3}", code)
    assert family_of(code) in FAMILIES
    for text in (rule.title, rule.condition, rule.why):
        assert len(text) > 8
    # Advice is something to do, or there is none.
    assert not rule.advice or len(rule.advice) > 8
    assert not rule.advice.startswith("Nothing")
    assert rule.title[0].isupper()
    assert not rule.title.endswith(".")
    # The file and the function that decide in XLA; a learnt condition has its accuracy instead.
    if family_of(code) == "TP":
        assert re.search(r"left \d+ of \d+ such pairs", rule.why)
    else:
        assert re.match(r"xla/[\w/]+\.(cc|h): \w", rule.mirrors)
    headings = ["Condition", "Result", "Why", *(["What to do"] if rule.advice else [])]
    assert [heading for heading, _ in sections(rule)][: len(headings)] == headings


REGISTERED = re.compile(r'\w\(\s*"([A-Z]{2,3}\d{3})"')


@pytest.mark.parametrize("module", sorted(RULES_FOLDER.rglob("*.py")), ids=lambda path: path.stem)
def test_the_file_next_to_a_module_has_the_pages_of_its_rules_and_nothing_else(module: Path) -> None:
    codes = sorted(code for code in REGISTERED.findall(module.read_text(encoding="utf-8")) if code in RULES)
    file = module.with_suffix(".toml")
    pages = tomllib.loads(file.read_text(encoding="utf-8")) if codes else {}
    assert list(pages) == codes
    assert file.exists() == bool(codes)
    assert {page_file(code) for code in codes} <= {file}
    for page in pages.values():
        assert set(page) <= {"condition", "why", "advice", "mirrors", "history"}


def test_every_page_is_next_to_a_module() -> None:
    files = {path for path in RULES_FOLDER.rglob("*.toml") if path.name != "knobs.toml"}
    assert files == {page_file(code) for code in RULES}


def test_refusals_of_fusion_passes_carry_xla_words() -> None:
    silent = {r.code for r in RULES.values() if not r.allows and not r.message and family_of(r.code) != "TP"}
    # FusionWrapper, the profit of a multi-output fusion, the choice of a consumer and a priority below zero
    # say nothing in XLA's logs.
    # Passes before fusion say nothing either where they stop.
    before_fusion = {"RW013", "RW014"}
    assert silent == {"FW005", "FW006", "FW007", "FW008", "GM034", "MO002", "PF032"} | before_fusion


def test_a_code_is_taken_once() -> None:
    rule = RULES["IF001"]
    with pytest.raises(ValueError, match="IF001 is already in the catalogue"):
        register(rule.code, "t")


def test_knobs_have_one_default_each() -> None:
    defaults: dict[str, float] = {}
    for rule in RULES.values():
        for knob in rule.knobs:
            assert defaults.setdefault(knob.name, knob.default) == knob.default
            assert knob.summary
    assert defaults["code-duplication-limit"] == 15
    assert defaults["cpu-max-concatenate-operands"] == 8
    assert defaults["cpu-min-minor-concatenate"] == 128
    assert defaults["cpu-max-reductions"] == 5
    assert defaults["cpu-max-fused-dot-vector"] == 16384


def test_pages_in_json_and_markdown_say_the_same() -> None:
    (entry,) = rules_json([RULES["CPU012"]])["rules"]
    page = rule_markdown(RULES["CPU012"])
    for key in ("title", "asks", "why", "advice", "message"):
        assert entry[key] in page
    assert entry["knobs"][0]["name"] in page


def test_settings_know_names_and_codes() -> None:
    assert parse_settings([], []) is AS_XLA
    settings = parse_settings(["code-duplication-limit=30"], ["cpu007"])
    assert settings.knobs == {"code-duplication-limit": 30.0}
    assert settings.disabled == {"CPU007"}


@pytest.mark.parametrize(
    ("overrides", "disabled", "message"),
    [
        (["code-duplication-limits=3"], [], "did you mean code-duplication-limit"),
        (["code-duplication-limit"], [], "expected NAME=VALUE"),
        (["code-duplication-limit=many"], [], "'many' is not a number"),
        ([], ["CPU777"], "did you mean CPU0"),
        ([], ["PF00"], "did you mean PF040, PF030 or PF020?"),
        ([], ["IF012"], "cannot be disabled"),
    ],
)
def test_settings_say_what_is_wrong(overrides: list[str], disabled: list[str], message: str) -> None:
    with pytest.raises(HlofuseError, match=message):
        parse_settings(overrides, disabled)
