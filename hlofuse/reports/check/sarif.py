"""SARIF 2.1.0, as GitHub's code scanning and editors take it."""

from hashlib import sha256
from typing import Any
from urllib.parse import quote

from hlofuse.format.escape import printable
from hlofuse.reports.check.model import TITLES, Check, Code, Finding, Where
from hlofuse.reports.check.phrases import one_line

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
HELP = (
    "hlofuse check compares a module after XLA's fusion passes with a budget or a stored baseline. A result"
    " names the rules that refused fusions; hlofuse rule CODE explains each."
)


def check_sarif(check: Check, version: str) -> dict[str, Any]:
    """One run of hlofuse of that version; a result for each finding."""
    codes = list(dict.fromkeys(f.code for f in check.findings))
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "hlofuse",
                        "semanticVersion": version,
                        "rules": [_rule(code) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(f, codes) for f in check.findings],
            }
        ],
    }


def _rule(code: Code) -> dict[str, Any]:
    return {
        "id": code.value,
        "shortDescription": {"text": TITLES[code]},
        "help": {"text": HELP},
    }


def _result(f: Finding, codes: list[Code]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": f.code.value,
        "ruleIndex": codes.index(f.code),
        "level": f.level.value,
        "message": {"text": _plain(one_line(f))},
        "partialFingerprints": {"hlofuse/v1": _fingerprint(f)},
        "properties": {
            "module": printable(f.module),
            "rules": list(dict.fromkeys(h.rule for h in f.refused_edges)),
        },
    }
    location: dict[str, Any] = {
        "logicalLocations": [{"name": printable(f.module), "kind": "module"}],
    }
    if f.where.file:
        location["physicalLocation"] = _physical(f.where)
    result["locations"] = [location]
    related = [h for h in f.refused_edges if h.where.file]
    if related:
        result["relatedLocations"] = [
            {
                "id": n,
                "physicalLocation": _physical(h.where),
                "message": {"text": _plain(f"{h.rule}: {h.producer.shown}")},
            }
            for n, h in enumerate(related, 1)
        ]
    return result


def _plain(text: str) -> str:
    """Text in which SARIF sees no link and no placeholder."""
    return printable(text).replace("[", "\\[").replace("{", "{{").replace("}", "}}")


def _physical(where: Where) -> dict[str, Any]:
    # Of an absolute path of another machine only the name is left (`format/paths.py`).
    found: dict[str, Any] = {
        "artifactLocation": {"uri": quote(where.file, safe="/._-~+@"), "uriBaseId": "%SRCROOT%"}
    }
    if where.line:
        found["region"] = {"startLine": where.line}
    return found


def _fingerprint(f: Finding) -> str:
    """The same for the same kernels wherever lines move."""
    parts = [f.code.value, f.module, f.where.file, f.where.function]
    parts += sorted(k.what for k in f.before) + sorted(k.what for k in f.now)
    return sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]
