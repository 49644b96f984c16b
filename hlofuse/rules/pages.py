"""The page of a rule, with the same sections in the terminal, in Markdown and in JSON."""

from collections.abc import Iterable

from hlofuse.ir.grouping import grouped
from hlofuse.ir.record import Json
from hlofuse.releases import ANY, Span
from .catalogue import Knob, Rule, family_of

SCHEMA = "hlofuse.rules/3"
FAMILIES: dict[str, str] = {
    "IF": "Instruction fusion, shared by all targets",
    "CPU": "CpuInstructionFusion",
    "FW": "FusionWrapper",
    "MO": "MultiOutputFusion, CpuMultiOutputFusion",
    "PF": "PriorityFusion",
    "GM": "MultiOutputFusion on GPU",
    "GI": "GpuInstructionFusion (until 0.4.35)",
    "FM": "FusionMerger (until 0.4.35)",
    "HF": "HorizontalLoopFusion, HorizontalInputFusion",
    "VS": "VariadicOpSplitter",
    "SI": "SortIotaFusion",
    "CS": "CSE",
    "DC": "DCE",
    "TS": "TupleSimplifier",
    "RW": "Passes before and after fusion",
    "EM": "Implementations of GPU kernels",
    "EC": "Implementations of CPU kernels",
    "TP": "XLA:TPU's fusion, learnt from programs that it compiled",
}  # The pass of each prefix of a code, in the order of lists


def family_title(rule: Rule) -> str:
    return FAMILIES.get(family_of(rule.code), "Other")


def by_family(rules: Iterable[Rule]) -> dict[str, list[Rule]]:
    """The rules by the letters of their codes, known letters first."""
    found = grouped((family_of(rule.code), rule) for rule in rules)
    return {letters: found[letters] for letters in dict.fromkeys((*FAMILIES, *found)) if letters in found}


def _values(knob: Knob) -> str:
    unit = f" {knob.unit}" if knob.unit else ""
    others = "".join(f", {value:g} in XLA {span}" for span, value in knob.by_release)
    return f"{knob.default:g}{unit}{others}"


def releases_text(span: Span) -> str:
    """The releases that have a rule, in a sentence; empty for all."""
    if span == ANY:
        return ""
    if span.since == span.until:
        return f"In XLA {span.since} only."
    if span.since:
        return f"In XLA {span.since} " + (f"to {span.until}." if span.until else "and later.")
    return f"In XLA {span.until} and earlier."


def sections(rule: Rule) -> list[tuple[str, str]]:
    """The non-empty sections of a page: heading and text."""
    found = [
        ("Condition", rule.condition),
        ("Result", _outcome(rule)),
        ("Why", rule.why),
        ("What to do", rule.advice),
        ("XLA's message", f"“{rule.message}”" if rule.message else ""),
        ("To try without", _what_if(rule)),
        ("Disabled by", f"`XLA_FLAGS={rule.flag}`" if rule.flag else ""),
        ("Knobs", "\n".join(f"{k.name} = {_values(k)}: {k.summary}" for k in rule.knobs)),
        ("XLA source", rule.mirrors),
        ("Releases", releases_text(rule.span)),
        ("History", rule.history),
    ]
    return [(heading, text) for heading, text in found if text]


def _what_if(rule: Rule) -> str:
    if rule.runs or family_of(rule.code) == "TP" or (rule.allows and rule.outcome):
        return ""
    if rule.fixed:
        return f"A replay cannot disable it: {rule.fixed}."
    return f"`--disable {rule.code}` replays a module without it."


def _outcome(rule: Rule) -> str:
    if rule.runs:
        return f"Implementation: {rule.runs}."
    return "The fusion or rewrite is applied." if rule.allows else "The fusion is refused."


def rule_json(rule: Rule) -> Json:
    return {
        "code": rule.code,
        "family": FAMILIES.get(family_of(rule.code), ""),
        "package": None,
        "title": rule.title,
        "asks": rule.condition,
        "why": rule.why,
        "advice": rule.advice,
        "mirrors": rule.mirrors,
        "message": rule.message,
        "allows": rule.allows,
        "essential": rule.essential,
        "fixed": rule.fixed,
        "runs": rule.runs,
        "pass": rule.pass_name or None,
        "flag": rule.flag or None,
        "knobs": [
            {"name": k.name, "default": k.default, "unit": k.unit, "summary": k.summary} for k in rule.knobs
        ],
        "since": rule.span.since or None,
        "until": rule.span.until or None,
        "history": rule.history,
    }


def rules_json(rules: Iterable[Rule]) -> Json:
    """Several entries under the name of the schema."""
    return {"schema": SCHEMA, "rules": [rule_json(r) for r in rules]}


def rule_markdown(rule: Rule) -> str:
    out = [f"# {rule.code}: {rule.title}\n"]
    for heading, text in sections(rule):
        if heading == "Knobs":
            text = "\n".join(f"- `{k.name}` = {_values(k)}: {k.summary}" for k in rule.knobs)
        elif heading == "XLA source":
            text = "; ".join(_mirror_markdown(part) for part in rule.mirrors.split("; "))
        out.append(f"## {heading}\n\n{text}\n")
    return "\n".join(out)


def index_markdown(rules: Iterable[Rule], link: str = "{code}.md") -> str:
    """A table for each family; `link` makes the target of an entry."""
    out = []
    for letters, found in by_family(rules).items():
        out.append(f"## {letters}: {family_title(found[0])}\n")
        rows = []
        for r in found:
            message = r.message.replace("|", "\\|") or "–"
            answer = [r.runs] if r.runs else [message, "yes" if r.allows else "no"]
            rows.append(f"| [{r.code}]({link.format(code=r.code)}) | {r.title} | {' | '.join(answer)} |")
        columns = ["implementation"] if found[0].runs else ["XLA's message", "allows"]
        out.append(f"| code | rule | {' | '.join(columns)} |\n{'|---' * (2 + len(columns))}|\n")
        out[-1] += "\n".join(rows) + "\n"
    return "\n".join(out)


def _mirror_markdown(part: str) -> str:
    file, colon, functions = part.partition(": ")
    return f"`{file}`{colon}{functions}"
