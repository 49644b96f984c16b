"""`diff`: two modules in, a ModuleDiff out."""

from collections.abc import Iterator

from hlofuse.account.traffic import KernelCosts
from hlofuse.analysis import kernels
from hlofuse.diff.changes import Changes, matches
from hlofuse.diff.fusions import FusionChanges
from hlofuse.diff.graph import Graph
from hlofuse.diff.model import Changed, Detail, Edit, Kind, ModuleDiff, ModuleSide
from hlofuse.diff.pairing import match_graphs
from hlofuse.diff.vocabulary import Vocabulary, canonical_attribute
from hlofuse.ir import Module
from hlofuse.ir.collector import no_collection


@no_collection()
def diff(before: Module, after: Module, *, metadata: bool = False) -> ModuleDiff:
    """What is different in `after`.

    Names, numbers and the order of the text are never a difference; op_name and source lines are
    one with `metadata`. Neither module is changed.
    """
    vocabulary = Vocabulary()
    b, a = Graph(before, vocabulary), Graph(after, vocabulary)
    m = match_graphs(b, a)
    edits = tuple(Changes(m, metadata=metadata).edits())
    fusions = FusionChanges(m, KernelCosts())
    found = tuple(fusions.find())
    return ModuleDiff(
        before=_side(b),
        after=_side(a),
        matches=tuple(matches(m)),
        edits=edits,
        fusions=found,
        fusions_unchanged=fusions.unchanged,
        header=tuple(_header(before, after, edits)),
    )


def _side(graph: Graph) -> ModuleSide:
    module = graph.module
    return ModuleSide(
        module=module,
        instructions=sum(len(c) for c in graph.reachable),
        kernels=len(kernels.kernels(module)),
        fusions=len(graph.groups),
        unreachable=graph.unreachable,
    )


def _header(before: Module, after: Module, edits: tuple[Edit, ...]) -> Iterator[Detail]:
    own, other = before.attributes.raw_items, after.attributes.raw_items
    for name in [*own, *(n for n in other if n not in own)]:
        old, new = own.get(name), other.get(name)
        if old and new and canonical_attribute(name, old) == canonical_attribute(name, new):
            continue
        if name == "entry_computation_layout" and any(isinstance(e, Changed) for e in edits):
            continue  # it repeats the shapes of parameters and root
        yield Detail(Kind.ATTRIBUTE, name, old, new)
