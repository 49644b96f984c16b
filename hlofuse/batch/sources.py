"""Tables of a run (`schema.toml`); units of work from folders, globs, lists, archives and object stores."""

import hashlib
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import islice, takewhile
from pathlib import Path
from posixpath import basename, dirname, relpath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hlofuse.format import printable
from hlofuse.inputs.companions import MANIFEST, STAMP
from hlofuse.inputs.dump_directory import DumpedModule, read_name
from hlofuse.inputs.profile.files import PROFILE
from hlofuse.ir import HlofuseError, Json, Record, Strings, grouped, packaged, replace

if TYPE_CHECKING:
    import pyarrow


@cache
def document(name: str) -> Json:
    return packaged(__file__, name)


VERSION: int = document("schema")["version"]
SCHEMA = f"hlofuse.batch/{VERSION}"


def package(name: str) -> Any:
    """An optional package; HlofuseError says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        hint = 'pip install duckdb fsspec pyarrow, or ".[batch]" from a checkout of hlofuse'
        raise HlofuseError(f"batch needs duckdb, fsspec and pyarrow: {hint} ({error})") from None


@cache
def tables() -> "dict[str, pyarrow.Schema]":
    pa = package("pyarrow")
    return {
        name: pa.schema([(column, pa.type_for_alias(kind)) for column, kind in columns.items()])
        for name, columns in document("schema")["tables"].items()
    }


_ARCHIVES = {"zip": (".zip",), "tar": (".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2")}
_XPLANE, _RUNS = ".xplane.pb", ["plugins", PROFILE]
_PROFILES = (_XPLANE, ".trace.json", ".trace.json.gz", ".sqlite")
_MODULES = (".hlo", ".txt", ".hlo.pb", ".mlir", ".stablehlo", ".log", *_PROFILES)
"""Suffixes of files that may hold a module or a profile; `.gz` may follow."""
_CASE = ("before.hlo", "before.hlo.gz")
_CHECKSUMS = tuple("ETag etag md5Hash content_md5 checksum".split())
"""Object stores' names for the checksum of a file."""


class Item(Record):
    """The files of one module, or one file, which may hold several."""

    source: str  # Its name in every table: the address of the file, or of the folder and the module in it
    path: str  # The same from the source on, the module left out: what two runs are paired by
    folder: str  # The address of its folder, as fsspec takes it
    files: Strings
    opened: str  # The name of the file to open; empty for the folder
    module: str | None  # Its label in a dump directory; None for a file or a folder of its own
    key: str  # A hash of content, version and options; items with equal keys have equal rows

    @property
    def name(self) -> str:
        """The module's name in a dump directory; empty for what has to be opened to know."""
        return (self.module or "").rpartition("module_")[2].partition(".")[2]

    @contextmanager
    def local(self, limit: int) -> Iterator[str]:
        """The path to open: the files themselves, or copies of those that are elsewhere. HlofuseError for a
        file of more than `limit` bytes, compressed ones counted as they are stored."""
        storage, folder = _storage(self.folder)
        if "file" in storage.protocol:
            yield str(Path(folder, self.opened))
            return
        with TemporaryDirectory(prefix="hlofuse-") as scratch:
            copy = Path(scratch, "module")
            copy.mkdir()
            for path in self.files:
                if (storage.size(path) or 0) > limit:
                    raise HlofuseError(f"{printable(basename(path))} has over {limit:,} bytes")
                to = copy / relpath(path, folder)
                to.parent.mkdir(parents=True, exist_ok=True)
                storage.get_file(path, str(to))
            yield str(copy / self.opened)


def items(sources: Iterable[str], salt: str = "") -> list[Item]:
    """Everything in the sources, each once. `salt` is part of every key. A source is a file, folder, glob,
    archive, a store's address (`s3://…`), or `@FILE`, a list. HlofuseError for one with nothing in it."""
    found: dict[str, Item] = {}
    for source in _list_paths(sources):
        within = {item.source: item for item in _in(source, salt)}
        if not within:
            raise HlofuseError(f"{printable(source)}: no HLO, dump directory or profile in it")
        found = within | found
    return list(found.values())


def _list_paths(sources: Iterable[str]) -> Iterator[str]:
    for source in sources:
        if not source.startswith("@"):
            yield source
            continue
        try:
            lines = Path(source[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            problem = getattr(error, "strerror", None) or error
            raise HlofuseError(f"cannot read the list {printable(source[1:])}: {problem}") from None
        yield from (line.strip() for line in lines if line.strip() and not line.startswith("#"))


def _in(source: str, salt: str) -> Iterator[Item]:
    storage, path = _storage(source)
    try:
        if storage.exists(path):
            roots, base = [path], path if storage.isdir(path) else dirname(path)
        else:
            roots, base = sorted(storage.glob(path)), dirname(path.partition("*")[0])
        infos = {p: info for one in roots for p, info in storage.find(one, detail=True).items()}
        for link in [p for p, info in infos.items() if info.get("islink") and storage.isdir(p)]:
            infos |= storage.find(link, detail=True)
        yield from _Listing(storage, base, infos, salt).items(roots)
    except (OSError, ValueError) as error:
        raise HlofuseError(f"cannot list {printable(source)}: {error}") from None


@dataclass
class _Listing:
    """Files of a store, a disk or an archive, with what is known of them."""

    storage: Any
    base: str  # The prefix that paths of items leave out
    infos: Mapping[str, Mapping[str, Any]]
    salt: str
    archive: str = ""  # The address of the one that holds the files

    def __post_init__(self) -> None:
        self.paths = sorted(self.infos)
        self.checksums: dict[str, str] = {}

    def items(self, named: Container[str] = ()) -> Iterator[Item]:
        """Items by folder, and in each by module; files that are `named` are taken whatever they are."""
        folders: dict[str, list[str]] = {}
        for path in self.paths:
            kind = next((kind for kind, ends in _ARCHIVES.items() if path.endswith(ends)), None)
            if kind is not None and not self.archive:
                yield from self._in_archive(kind, path)
            elif path in named:
                yield self._item(dirname(path), [path], basename(path))
            else:
                folders.setdefault(dirname(path), []).append(path)
        labels = {folder: set(filter(None, map(_label, paths))) for folder, paths in folders.items()}
        cases = {f for f, paths in folders.items() if any(basename(p) in _CASE for p in paths)}
        owners = {f: dirname(f) if f in cases else f for f in folders if f in cases or labels[f]}
        shared = {f: self._companions(folders.get(owner, ()), owner) for f, owner in owners.items()}
        used = {path for paths in shared.values() for path in paths}
        for folder, paths in folders.items():
            if basename(folder) in labels.get(dirname(folder), ()):
                continue  # StableHLO that the runtime dumped of a module that XLA dumped
            if folder in cases:
                yield self._item(folder, [*paths, *shared[folder]])
                continue
            own = grouped((_owner(basename(path), labels[folder]), path) for path in paths)
            others = [path for path in own.pop("", ()) if path not in used]
            for label, files in own.items():
                yield self._item(folder, [*files, *shared[folder]], module=label)
            if folder.split("/")[-3:-1] == _RUNS:
                hosts = [path for path in others if path.endswith(_XPLANE)]
                others = [path for path in others if path not in hosts]
                yield from [self._item(folder, hosts)] if hosts else ()
            for path in others:
                if path.removesuffix(".gz").endswith(_MODULES):
                    yield self._item(folder, [path], basename(path))

    def _companions(self, siblings: Iterable[str], owner: str) -> list[str]:
        """Stamps and profiles of all modules in a dump directory or a corpus."""
        below = f"{owner}/{PROFILE}/" if owner else f"{PROFILE}/"
        inside = islice(self.paths, bisect_left(self.paths, below), None)
        own = [p for p in siblings if basename(p) in (STAMP, MANIFEST) or p.endswith(_PROFILES)]
        return [*own, *takewhile(lambda path: path.startswith(below), inside)]

    def _item(
        self,
        folder: str,
        files: Sequence[str],
        name: str = "",
        module: str | None = None,
    ) -> Item:
        """The item for the file `name`, for a module of a dump directory, or for the whole folder."""
        if self.archive:
            address = self.archive.replace("://", f"://{folder}", 1)
        else:
            address = self.storage.unstrip_protocol(folder)
        source = "/".join(filter(None, (address.removeprefix("file://"), module or name)))
        path = f"{folder.removeprefix(self.base)}/{name}".strip("/").removeprefix("./")
        digest = hashlib.blake2b(self.salt.encode(), digest_size=16)
        for file in files:
            digest.update(f"\0{relpath(file, folder)}\0{self._checksum(file)}".encode())
        return Item(source, path, address, tuple(files), name, module, digest.hexdigest())

    def _in_archive(self, kind: str, path: str) -> Iterator[Item]:
        """The items of an archive; for an unreadable one a single item that fails when it is opened."""
        base = dirname(path).removeprefix(self.base).strip("/")
        address = f"{kind}://::{self.storage.unstrip_protocol(path)}"
        try:
            storage, _ = _storage(address)
            inside = _Listing(storage, "", storage.find("", detail=True), self.salt, address)
            found = [replace(i, path=f"{base}/{i.path}".strip("/")) for i in inside.items()]
        except Exception:
            found = []
        yield from found or [self._item(dirname(path), [path], basename(path))]

    def _checksum(self, path: str) -> str:
        """The store's where it has one, else of the bytes; the error of a file that cannot be read."""
        info = self.infos.get(path, {})
        found = self.checksums.get(path) or next((str(info[k]) for k in _CHECKSUMS if info.get(k)), None)
        if found is None:
            digest = hashlib.blake2b(digest_size=16)
            try:
                with self.storage.open(path) as file:
                    while data := file.read(1 << 20):
                        digest.update(data)
                found = digest.hexdigest()
            except Exception as error:
                found = repr(error)
        if path.endswith(_PROFILES):  # of many modules, and large
            self.checksums[path] = found
        return found


def _label(path: str) -> str:
    """The common prefix of a module's files in a dump directory; empty for another file."""
    file = read_name(Path(path))
    return DumpedModule(file.module, file.module_id, file.prefix).label if file is not None else ""


def _owner(name: str, labels: Container[str]) -> str:
    """The label that a file begins with; empty for one of no module."""
    return next((name[:n] for n, c in enumerate(name) if c == "." and name[:n] in labels), "")


def _storage(address: str) -> tuple[Any, str]:
    try:
        storage, path = package("fsspec.core").url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise HlofuseError(f"{printable(address)}: {error}") from None
    return storage, path
