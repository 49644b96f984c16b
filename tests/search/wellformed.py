"""What must be true of a module between any two passes."""

from __future__ import annotations

from collections import Counter

from hlofuse.ir.graph import Module
from hlofuse.ir.shape_check import first_misfit


def problems(module: Module) -> list[str]:
    """Every broken link of the graph, and the first shape that does not fit; empty if all is well."""
    found: list[str] = []
    there = set(module.computations)
    calls: dict[object, Counter[str]] = {c: Counter() for c in there}
    names: Counter[str] = Counter()
    for c in module.computations:
        inside = set(c)
        names.update(i.name for i in inside)
        if c.root not in inside:
            found.append(f"{c.name}: the root is not in it")
        if [p.parameter_number for p in c.parameters] != list(range(len(c.parameters))):
            found.append(f"{c.name}: parameters {[p.name for p in c.parameters]}")
        if {i for i in inside if i.opcode == "parameter"} != set(c.parameters):
            found.append(f"{c.name}: its list of parameters is not what it holds")
        if len(c.post_order()) != len(inside):
            found.append(f"{c.name}: {len(c.post_order())} of {len(inside)} in post-order")
        for x in inside:
            if x.computation is not c:
                found.append(f"{x.name}: belongs to another computation")
            if any(o not in inside for o in x.operands):
                found.append(f"{x.name}: an operand is not in {c.name}")
            if any(x not in o.users for o in x.operands) or len(x.users) != len(set(x.users)):
                found.append(f"{x.name}: users and operands do not agree")
            if any(x not in u.operands for u in x.users):
                found.append(f"{x.name}: a user does not read it")
            for callee in x.called_computations:
                if callee not in there:
                    found.append(f"{x.name}: calls {callee.name}, which is not in the module")
                else:
                    calls[callee][x.name] += 1
    for c in module.computations:
        if dict(calls[c]) != {caller.name: times for caller, times in c.callers.items()}:
            found.append(f"{c.name}: its callers are not those that call it")
    found += [f"{name}: there are {n} of this name" for name, n in names.items() if n > 1]
    misfit = None if found else first_misfit(module)
    return [*found, f"{misfit[0]}: {misfit[1]}"] if misfit is not None else found
