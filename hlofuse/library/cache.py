"""The cache of replays in the user's own folder: a later question about an input begins with them.

An entry is found by what was read (the content of the input, the state of the files next to it), the options
of the call, and this installation of hlofuse. It is written to a temporary file and renamed, so that several
commands may write at once; its digest tells one that is damaged. Entries are only read from a folder and a
file that no other user can write.

Instructions and computations refer to one another in long chains, which `pickle` would follow by recursion.
So they are stored empty, and their fields after everything else, one list for each field. A computation to
whose instructions nothing else refers, as to those in most fusions, is stored apart and read when it is
first asked for them."""

import os
import pickle
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copyreg import __newobj__  # type: ignore[attr-defined]
from functools import cached_property
from hashlib import blake2b
from importlib import import_module
from io import BytesIO
from itertools import repeat
from pathlib import Path
from typing import Any

from hlofuse import __version__
from hlofuse.account.account import Account
from hlofuse.account.observer import CostObserver
from hlofuse.account.replaying import Costs, costs_of
from hlofuse.account.traffic import KernelCosts
from hlofuse.analysis.cost import CostAnalysis
from hlofuse.cost.cpu.device import CHOICE, this_machine
from hlofuse.cost.gpu.summary_table import SharedTables
from hlofuse.inputs.companions import MANIFEST, STAMP, Companions
from hlofuse.inputs.profile.files import PROFILE
from hlofuse.ir import Computation, Instruction, Json, Module, Shape, replace
from hlofuse.ir.attributes.attributes import NO_ATTRIBUTES, Attributes
from hlofuse.ir.native import no_collection
from hlofuse.reports.advice.recipe import Recipe
from hlofuse.reports.common.lineage import Lineage
from hlofuse.rules.catalogue import Rule, catalogue
from .options import Listener, ReplayOptions
from .program import Program

VARIABLE = "HLOFUSE_CACHE"  # The environment variable: a folder to use, or `off`
LIMIT = 1_000_000_000  # Bytes of all entries; beyond them those that were not used for longest go
_ENDINGS = _ENTRY, _TEMPORARY = ".replay", ".part"
_KEY_BYTES = 20
_DIGEST = 32
_MOST_FILES = 5_000  # an input folder with more is not cached: looking at each would take longer
_WRITABLE_BY_OTHERS = 0o022
_FOUND_AGAIN = {"companions", "lowerings", "changes", "release_marks"}  # findings about the files of a module


def cache_folder() -> Path | None:
    """The folder of the cache, there or not; None where it is off."""
    given = os.environ.get(VARIABLE, "")
    if given:
        return None if given == "off" else Path(given)
    if sys.platform == "win32":
        place = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        place = os.path.expanduser("~/Library/Caches")
    else:
        place = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(place, "hlofuse") if os.path.isabs(place) else None


def place_of(options: ReplayOptions) -> Path | None:
    """The file for an input with these options; None where nothing is stored for it."""
    is_off = options.no_cache or options.given is not None or cache_folder() is None
    if is_off or options.input == "-":
        return None
    key = blake2b(digest_size=_KEY_BYTES)
    try:
        cpu = os.environ.get(CHOICE, "")
        own = replace(options, no_cache=False), cpu, _state(Path(cpu))
        for part in (*_installation(), *own, *_read_from(options)):
            key.update(f"{part}\0".encode("utf-8", "surrogateescape"))
        if os.path.isfile(options.input):
            key.update(Path(options.input).read_bytes())
    except (OSError, ValueError):
        return None
    return _entry(key.hexdigest())


def place_of_content(content: str) -> Path | None:
    """The file for what a text decides; None where the cache is off."""
    return _entry(blake2b(content.encode("utf-8", "surrogateescape"), digest_size=_KEY_BYTES).hexdigest())


def _entry(key: str) -> Path | None:
    folder = cache_folder()
    return None if folder is None else folder / f"{key}{_ENTRY}"


def _installation() -> Iterator[object]:
    """This hlofuse: its version and the state of its files, which an editable checkout changes."""
    yield __version__, sys.implementation.cache_tag
    for folder, _, names in os.walk(Path(__file__).parent.parent):
        if not folder.endswith("__pycache__"):
            yield from (_state(Path(folder, name)) for name in sorted(names))


def _read_from(options: ReplayOptions) -> Iterator[object]:
    """The state of the files that are read: for a folder all, for a file those of the same compilation."""
    path = Path(options.input)
    folder, above = path.parent, path.resolve().parent.parent
    if path.is_dir():
        folder, above = path, path.resolve().parent
        yield from _below(path)
    else:
        names = sorted(Companions(path, options.module).names)
        yield from (_state(folder / name) for name in names if name != path.name)
    yield from (_state(place / name) for place in (folder, above) for name in (STAMP, MANIFEST))
    given = (options.device, options.ids, options.xla_trace, options.profile, options.inputs)
    for named in (*given, above / PROFILE):
        if named is not None:
            yield from _below(Path(named))


def _below(path: Path) -> Iterator[object]:
    yield _state(path)
    count = 0
    for folder, folders, names in os.walk(path):
        folders.sort()
        count += len(names)
        if count > _MOST_FILES:
            raise ValueError("too many files")
        yield from (_state(Path(folder, name)) for name in sorted(names))


def _state(path: Path) -> object:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return path.name, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def read(path: Path, listener: Listener) -> Any:
    """The stored value, whose later messages go to `listener`; None without one. A damaged file goes."""
    try:
        if not (_is_own(path.parent) and _is_own(path)):
            return None
        data = memoryview(path.read_bytes())
        if _digest(data[_DIGEST:]) != data[:_DIGEST]:
            raise ValueError("damaged")
        value, machine = _load(data[_DIGEST:], listener)
        if machine not in (None, this_machine()):
            return None  # times of the CPU that is similar to another machine
        os.utime(path)
    except FileNotFoundError:
        return None
    except Exception:  # whatever is wrong with it, the replay is made again
        remove(path)
        return None
    return value


def write(path: Path, value: object) -> None:
    """Store a value where that is possible, and keep the cache within its limit."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        machine = this_machine() if this_machine.cache_info().currsize else None  # a CPU time was asked for
        data = _dump((value, machine)) if _is_own(path.parent) else b""
        if not 0 < len(data) <= LIMIT // 4:
            return
        number, name = tempfile.mkstemp(_TEMPORARY, dir=path.parent)
        try:
            with open(number, "wb") as file:
                file.write(_digest(data) + data)
            os.replace(name, path)
        except BaseException:
            remove(Path(name))
            raise
    except (OSError, pickle.PicklingError, TypeError, AttributeError):
        return  # an answer does not fail because it cannot be kept
    found = sorted(entries().items(), key=lambda pair: pair[1].st_mtime)
    size = sum(stat.st_size for _, stat in found)
    for earlier, stat in found:
        if size > LIMIT:
            remove(earlier)
            size -= stat.st_size


def entries() -> dict[Path, os.stat_result]:
    """The state of each file of the cache, unfinished ones included."""
    found = {}
    with suppress(OSError):  # there is none, or another command has removed it
        for file in os.scandir(cache_folder() or ""):
            if file.name.endswith(_ENDINGS):
                found[Path(file.path)] = file.stat()
    return found


def remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _digest(data: bytes | memoryview) -> bytes:
    return blake2b(data, digest_size=_DIGEST).digest()


def _is_own(path: Path) -> bool:
    """True if it belongs to this user and no other can write it; local data of Windows always does."""
    found = path.stat()
    return not hasattr(os, "getuid") or (
        found.st_uid == os.getuid() and not found.st_mode & _WRITABLE_BY_OTHERS
    )


def state_of(program: Program) -> Json:
    """Everything that was worked out about a program, by name."""
    kind = type(program)
    return {k: v for k, v in vars(program).items() if isinstance(getattr(kind, k, None), cached_property)}


_WORKED_OUT = "_places", "_order"  # None until needed
_CONTENTS = ["_slots", "parameters", "root", "_callers", "_order"]


def _fields(kind: Any) -> list[str]:
    # A compiled class lists its attributes under another name.
    names = getattr(kind, "__mypyc_attrs__", None) or kind.__slots__
    return [name for name in names if name not in ("__weakref__", *_CONTENTS)]


_IS_COMPILED = hasattr(Computation, "__mypyc_attrs__")
_NODES = {kind: _fields(kind) for kind in (Instruction, Computation)}
_BLANK: dict[type, tuple[Any, ...]] = {Computation: ("",), Module: ("",)}
"""Arguments of classes that cannot be made without any where they are compiled."""
_BLANK[Lineage] = Module(""), Module(""), ()


class _Pickler(pickle.Pickler):
    def __init__(self, file: BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.nodes: list[Any] = []

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Computation):
            obj.parameters  # noqa: B018  read now, if it was stored apart
        kind = obj.__class__
        if kind is Instruction or kind is Computation:
            self.nodes.append(obj)
            return __newobj__, (kind, *_BLANK.get(kind, ()))
        if isinstance(obj, tuple):  # one with names, without calls of Python when it is loaded
            return tuple.__new__, (kind, tuple(obj))
        if kind in (CostAnalysis, KernelCosts, SharedTables):  # quicker to work out again
            return kind, ()
        if obj is NO_ATTRIBUTES or kind is Listener:
            return _shared, (kind.__name__,)
        if isinstance(obj, Rule) and catalogue().get(obj.code) is obj:
            return _rule, (obj.code,)
        if kind is Shape:  # its hash is another one in another process
            return Shape, (
                obj.element_type,
                obj.dimensions,
                obj.layout,
                obj.tuple_shapes,
                obj.dynamic_dimensions,
            )
        if kind is Attributes:
            return Attributes, (obj.text,)
        if kind is Module:
            obj.stack_frames  # noqa: B018  read now: what is deferred cannot be stored
            findings = {k: v for k, v in obj.findings.items() if k not in _FOUND_AGAIN}
            return _reduced(obj, findings=findings)
        if kind is Account:
            return _reduced(obj, without="memory")
        if kind is Recipe:
            return _recipe, (obj.name, obj.text)
        if kind is Costs:
            return costs_of, (obj.observer, obj.replay)
        if kind is CostObserver:
            return _reduced(obj, model=None)
        if hasattr(kind, "__mypyc_attrs__"):
            return _reduced(obj)
        return NotImplemented


class _BodyPickler(_Pickler):
    """Stores what only `own` holds, and of all else the place."""

    def __init__(self, file: BytesIO, own: Computation, places: dict[int, tuple[int, Any]]) -> None:
        super().__init__(file)
        self._own, self._places = own, places

    def reducer_override(self, obj: Any) -> Any:
        is_apart = isinstance(obj, Instruction) and id(obj) not in self._places
        if is_apart and obj.computation is not self._own:
            return _in_slot, (obj.computation, obj.id)
        if not is_apart and isinstance(obj, Instruction | Computation | Shape | Attributes):
            return _shared, self._places.setdefault(id(obj), (len(self._places), obj))[:1]
        return super().reducer_override(obj)


def _in_slot(computation: Computation, slot: int) -> Instruction | None:
    return computation._slots[slot]


def _recipe(name: str, text: str) -> Recipe:
    recipes: tuple[Recipe, ...] = import_module("hlofuse.reports.advice.catalogue").RECIPES
    return next(r for r in recipes if (r.name, r.text) == (name, text))


def _reduced(obj: Any, without: str = "", **changed: object) -> tuple[Any, ...]:
    """An instance of a class, compiled or not, as pickle wants it: made empty, then filled."""
    kind = obj.__class__
    names = getattr(kind, "__mypyc_attrs__", None) or vars(obj)
    values = {n: getattr(obj, n) for n in names if n != without and hasattr(obj, n)}
    return __newobj__, (kind, *_BLANK.get(kind, ())), {**values, **changed}, None, None, _fill


def _fill(obj: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        object.__setattr__(obj, name, value)  # also of frozen ones


def _rule(code: str) -> Rule:
    return catalogue()[code]


def _shared(key: object) -> Any:
    raise NotImplementedError


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BytesIO, shared: Mapping[object, Any]) -> None:
        super().__init__(file)
        self._shared = shared

    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) == (__name__, _shared.__name__):
            return self._shared.__getitem__
        return super().find_class(module, name)


def _columns(nodes: Sequence[Any], names: Sequence[str]) -> Iterator[list[Any] | None]:
    """The values of each field; None where all are."""
    for name in names:
        values = [getattr(node, name, None) for node in nodes] if name not in _WORKED_OUT else []
        yield values if any(v is not None for v in values) else None


def _fill_columns(
    nodes: Sequence[Any], names: Sequence[str], columns: Iterable[Sequence[Any] | None]
) -> None:
    for name, values in zip(names, columns, strict=True) if nodes else ():
        deque(map(getattr(nodes[0].__class__, name).__set__, nodes, values or repeat(None)), maxlen=0)


@no_collection()
def _dump(value: object) -> bytes:
    file = BytesIO()
    pickler = _Pickler(file)
    nodes = pickler.nodes

    def dump(nodes: Sequence[Any], names: Sequence[str]) -> None:
        if nodes:
            pickler.dump((nodes, names))
            deque(map(pickler.dump, _columns(nodes, names)), maxlen=0)

    pickler.dump(value)
    done, opened = 0, set[Computation | None]([None])
    while done < len(nodes):  # the fields of one may name others
        some, done = nodes[done:], len(nodes)
        for kind, names in _NODES.items():
            dump([node for node in some if isinstance(node, kind)], names)
        named = some if _IS_COMPILED else [x.computation for x in some if isinstance(x, Instruction)]
        found = [c for c in dict.fromkeys(named) if isinstance(c, Computation) and c not in opened]
        opened.update(found)
        dump(found, _CONTENTS)
    apart = [c for c in nodes if isinstance(c, Computation) and c not in opened]
    places = {id(node): (place, node) for place, node in enumerate(nodes)}
    dump([c for c in apart if places.keys() >= set(map(id, c.callers))], ["_callers"])
    pickler.dump(None)
    bodies = {}
    for body in apart:
        own = BytesIO()
        contents = [*_columns([body], _CONTENTS)]
        _BodyPickler(own, body, places).dump(
            (body.instructions, [*_columns(body.instructions, _NODES[Instruction])], contents)
        )
        bodies[body] = own.getvalue()
    pickler.dump(([obj for _, obj in places.values()], bodies))
    if done < len(nodes):
        raise pickle.PicklingError("a computation is in no module")
    return file.getvalue()


@no_collection()
def _load(data: memoryview, listener: Listener) -> Any:
    shared: dict[object, Any] = {"Listener": listener, "Attributes": NO_ATTRIBUTES}
    unpickler = _Unpickler(BytesIO(data), shared)
    value = unpickler.load()
    while (found := unpickler.load()) is not None:
        nodes, names = found
        _fill_columns(nodes, names, [unpickler.load() for _ in names])
    places, bodies = unpickler.load()
    shared.update(enumerate(places))

    def read(self: Any, name: str) -> Any:
        if name not in _CONTENTS:
            raise AttributeError(name)
        nodes, columns, contents = _Unpickler(BytesIO(bodies.pop(self)), shared).load()
        _fill_columns(nodes, _NODES[Instruction], columns)
        self.__class__ = Computation
        for field, values in zip(_CONTENTS, contents, strict=True):
            if not hasattr(self, field):  # it may have been set since
                setattr(self, field, values and values[0])
        return getattr(self, name)

    unread = type("Unread", (Computation,), {"__slots__": (), "__getattr__": read}) if bodies else Computation
    for body in bodies:
        body.__class__ = unread
    return value
