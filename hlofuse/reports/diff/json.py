"""The report for programs: everything in the diff, as JSON. The schema is in docs/json-diff.md."""

from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import to_builtins

from hlofuse.account.functions import Functions
from hlofuse.analysis.cost import Cost
from hlofuse.diff.compare import moved_lines
from hlofuse.diff.model import (
    Accounts,
    Added,
    Changed,
    Detail,
    Edit,
    FlagChange,
    FusionChange,
    ModuleDiff,
    ModuleSide,
    Moved,
    Removed,
    measured_changes,
)
from hlofuse.format import fields, us_json
from hlofuse.format.paths import source_text
from hlofuse.ir import Instruction, Json, Module
from hlofuse.matching.graph import Occurrence
from hlofuse.reports.common.functions import functions_json
from hlofuse.reports.common.model import totals_json
from hlofuse.reports.common.profile import profile_json
from .model import by_source


def as_dict(diff: ModuleDiff, accounts: Accounts) -> Json:
    """The diff in plain dicts, lists, strings and numbers; its first field says which schema it follows."""
    before, after = diff.before.module, diff.after.module
    devices, moved = accounts.devices or (None, None), moved_lines(diff)
    functions = accounts.functions
    return {
        "schema": "hlofuse.diff/3",
        **fields(diff, "same same_program"),
        "before": _side(diff.before, accounts, 0, devices[0], functions),
        "after": _side(diff.after, accounts, 1, devices[1], functions),
        "flags": flags_json(accounts.flags),
        "timing": accounts.timing,
        "kernels": [
            {
                **fields(change, "before after", lambda r: r.instruction.name),
                **fields(change, "measured_us=us", us_json),
            }
            for change in measured_changes(diff, accounts)
        ],
        "fusions": [_fusion(f, before, after) for f in diff.fusions],
        "fusions_unchanged": diff.fusions_unchanged,
        "lines": [
            {
                **fields(x, "source source_before"),
                "kernels": [x.kernels_before, x.kernels_after],
                "bytes": [x.bytes_before, x.bytes_after],
                **fields(x, "us", us_json),
            }
            for x in by_source(accounts, moved)
        ],
        "moved_lines": [list(pair) for pair in moved.items()],
        "instructions": [_edit(e, before, after) for e in diff.edits],
        **fields(diff, "header", _detail),
        "placements": [
            fields(m, "before after", _place)
            for m in diff.matches
            if any(p.fusion for p in (*m.before, *m.after))
        ],
    }


def flags_json(changes: Iterable[FlagChange]) -> dict[str, list[str | None]]:
    """Flags by name, with their values on both sides."""
    return {name.removeprefix("--"): list(values) for name, *values in changes}


def _side(
    side: ModuleSide,
    accounts: Accounts,
    number: int,
    device: str | None,
    functions: Sequence[Functions],
) -> Json:
    account = (accounts.before, accounts.after)[number]
    return {
        **fields(side, "module=module.name file=module.filename"),
        "device": device,
        **fields(side, "instructions fusions"),
        "totals": totals_json(account.totals, accounts.counted[number]),
        "functions": functions_json(functions[number]),
        "computations_not_compared": side.unreachable,
        "loops": list(map(to_builtins, account.loops)),
        **profile_json(account.measured),
    }


def _cost(cost: Cost) -> dict[str, int]:
    return fields(cost, "flops transcendentals bytes=bytes_accessed custom_calls_not_counted=unknown")


def _fusion(change: FusionChange, before: Module, after: Module) -> Json:
    old, new = (partial(_instruction, module) for module in (before, after))
    return {
        "kind": str(change.kind),
        "before": [{**old(f), "kind": f.fusion_kind} for f in change.before],
        "after": [{**new(f), "kind": f.fusion_kind} for f in change.after],
        **fields(change, "joined", old),
        **fields(change, "left added", new),
        **fields(change, "removed", old),
        **fields(change, "members", new if change.after else old),
        **fields(change, "details", _detail),
        **fields(change, "cost_before cost_after", _cost),
    }


def _edit(edit: Edit, before: Module, after: Module) -> Json:
    out: Json = {"edit": type(edit).__name__.lower()}
    if isinstance(edit, Removed | Changed | Moved):
        out["before"] = [{**_instruction(before, p.instruction), **_in_fusion(p)} for p in edit.before]
    if isinstance(edit, Added | Changed | Moved):
        out["after"] = [{**_instruction(after, p.instruction), **_in_fusion(p)} for p in edit.after]
    if isinstance(edit, Changed):
        out |= fields(edit, "details", _detail)
    if isinstance(edit, Added | Removed) and edit.copy_of is not None:
        out["copy_of"] = edit.copy_of.name
    out["because"] = [i.name for i in edit.because]
    return out


def _instruction(module: Module, i: Instruction) -> Json:
    return {
        **fields(i, "name opcode"),
        "shape": str(i.shape),
        "computation": i.computation_name or None,
        "op_name": i.op_name,
        "source": source_text(module.source_of(i)) or None,
    }


def _in_fusion(place: Occurrence) -> Json:
    return {"fusion": place.fusion.name if place.fusion else None}


def _place(place: Occurrence) -> Json:
    return {"name": place.instruction.name, **_in_fusion(place)}


def _detail(d: Detail) -> Json:
    return {"kind": str(d.kind), **fields(d, "name before after")}
