"""Makes a module smaller while a condition holds: fewer results, instructions, users; smaller shapes."""

import importlib
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec

from hlofuse.ir import HlofuseError, Progress, copy_module, parse_module, print_module
from hlofuse.ir.attributes.attributes import NO_ATTRIBUTES
from hlofuse.ir.fusing import tuple_of
from hlofuse.ir.graph import Instruction, Module, callees_first
from hlofuse.passes.control_flow.call_graph import CallInliner, HloComputationDeduplicator
from hlofuse.passes.dce import HloDCE, TupleSimplifier
from hlofuse.passes.loop.simplifier import WhileLoopSimplifier
from hlofuse.trace import Recorder

Condition = Callable[[str], bool]  # True for the text of a module that is still of interest
_CONTROL_FLOW = ("while", "conditional", "call")
_Edit = Callable[[Module, Sequence[str]], None]
_STEPS_ABOVE = 4
_METADATA = re.compile(r", (?:metadata|frontend_attributes|origin)=\{(?:[^{}]|\{[^{}]*\})*\}")
_TABLES = re.compile(r"\n(?:File|Function|Stack)\w+\n(?:\d.*\n)+")
_SIZE = re.compile(r"\d+")
_SHAPE = re.compile(r"[a-z]\w*\[([\d,]+)\]")


class Reduction:
    """A module that shrinks; `text` is the smallest so far that meets the condition; HlofuseError if none."""

    def __init__(
        self,
        module: Module,
        condition: Condition,
        progress: Progress = lambda left, of: None,
    ) -> None:
        self._condition, self._progress = condition, progress
        self._seen = set[str]()
        self.tries = 0
        first = copy_module(module)
        first.attributes = NO_ATTRIBUTES  # the layouts and aliases of parameters that will change
        HloDCE().run(first, Recorder())
        self.text = print_module(first)
        if not condition(self.text):
            raise HlofuseError("the condition does not hold for the module itself")
        self.first = self.instructions

    @property
    def instructions(self) -> int:
        """The number of instructions, parameters included."""
        return parse_module(self.text).instruction_count

    def run(self) -> str:
        """The text that no single step makes smaller."""
        self._keep(_TABLES.sub("", _METADATA.sub("", self.text)))
        before = ""
        while before != self.text:
            before = self.text
            self._go_inside()
            self._without(_results, _drop_results)
            self._without(_cuttable, _cut)
            self._without(_inner, _pass_on)
            sizes = {int(n) for dims in _SHAPE.findall(self.text) for n in _SIZE.findall(dims)}
            for size in sorted(sizes - {0, 1, 2}, reverse=True):
                for smaller in dict.fromkeys((1, 2, size // 2)):
                    if self._keep(re.sub(rf"(?<![\w.\-]){size}(?![\w.])", str(smaller), self.text)):
                        break
            for tidy in (
                CallInliner,
                TupleSimplifier,
                WhileLoopSimplifier,
                HloComputationDeduplicator,
            ):
                module = parse_module(self.text)
                tidy().run(module, Recorder())
                _clean(module)
                self._keep(print_module(module))
        return self.text

    def _keep(self, text: str) -> bool:
        """True if the text is new, valid and meets the condition: then it is the smallest so far."""
        if text in self._seen or text == self.text:
            return False
        self._seen.add(text)
        if not is_valid(text):
            return False
        self.tries += 1
        if not self._condition(text):
            return False
        self.text = text
        self._progress(self.instructions, self.first)
        return True

    def _without(self, names: Callable[[Module], list[str]], edit: _Edit) -> None:
        """Edit as many of these instructions as the condition allows: halves first, single ones last."""
        size = len(names(parse_module(self.text)))
        while size:
            place = 0
            while chunk := names(parse_module(self.text))[place : place + size]:
                module = parse_module(self.text)
                edit(module, chunk)
                _clean(module)
                if not self._keep(print_module(module)):
                    place += size
            size //= 2

    def _go_inside(self) -> None:
        """Make a body of a loop, a branch or a called computation the entry where that is enough."""
        whole = parse_module(self.text).computations
        for name in [c.name for c in whole if any(i.opcode in _CONTROL_FLOW for i in c.callers)]:
            module = parse_module(self.text)
            module.entry = next(c for c in module.computations if c.name == name)
            used = set(callees_first([module.entry]))
            module.remove_computation(*(c for c in module.computations if c not in used))
            _clean(module)
            if self._keep(print_module(module)):
                return


def is_valid(text: str) -> bool:
    """True if the text is a module, by XLA's parser too where jaxlib is at hand."""
    try:
        parse_module(text)
    except HlofuseError:
        return False
    if find_spec("jaxlib") is None:
        return True
    try:
        importlib.import_module("jaxlib._hlo").hlo_module_from_text(text)
    except ImportError:
        return True
    except (RuntimeError, ValueError):
        return False
    return True


def _clean(module: Module) -> None:
    """Without what nothing reads; the parameters of the entry get new numbers."""
    HloDCE().run(module, Recorder())
    entry = module.entry
    for parameter in [p for p in entry.parameters if not p.users and not p.is_root]:
        entry.remove_instruction(parameter)
    left = sorted((i for i in entry if i.is_parameter), key=lambda p: p.parameter_number)
    for number, parameter in enumerate(left):
        parameter.payload = str(number)


def _results(module: Module) -> list[str]:
    root = module.entry.root
    return [str(k) for k in range(root.operand_count)] if root.opcode == "tuple" else []


def _drop_results(module: Module, places: Sequence[str]) -> None:
    entry, root = module.entry, module.entry.root
    left = [o for k, o in enumerate(root.operands) if str(k) not in places]
    if len(left) == 1:
        entry.root = left[0]
    elif left:
        entry.root = entry.add_instruction(tuple_of(left), root.name)


def _cuttable(module: Module) -> list[str]:
    return [i.name for i in reversed(module.entry.post_order()) if not i.is_parameter]


def _cut(module: Module, names: Sequence[str]) -> None:
    """Parameters take the place of these instructions of the entry; the root becomes what it reads."""
    entry = module.entry
    for x in [i for i in entry.post_order() if i.name in set(names)]:
        if x.is_root:
            entry.root = next((o for o in x.operands if not o.is_parameter), x)
            continue
        name = module.instruction_names.unique(f"p.{x.name}")
        x.replace_all_uses_with(entry.append_parameter(name, x.shape))


def _inner(module: Module) -> list[str]:
    return [i.name for c in module.computations for i in reversed(c.post_order()) if _stand_in(i) is not None]


def _pass_on(module: Module, names: Sequence[str]) -> None:
    """A value above of the same shape takes the place of these instructions."""
    for x in [i for i in module.instructions() if i.name in set(names)]:
        operand = _stand_in(x)
        if operand is not None:
            x.replace_all_uses_with(operand)


def _stand_in(x: Instruction) -> Instruction | None:
    """The nearest of a few steps above; for a parameter of the entry the first of its shape."""
    if x.is_parameter and x.computation is not None and x.computation.is_entry:
        of_shape = (p for p in x.computation.parameters if p.shape.key == x.shape.key)
        return next((p for p in of_shape if p.parameter_number < x.parameter_number), None)
    above = [x]
    for _ in range(_STEPS_ABOVE):
        above = list(dict.fromkeys(o for i in above for o in i.operands))
        if (found := next((o for o in above if o.shape.key == x.shape.key), None)) is not None:
            return found
    return None
