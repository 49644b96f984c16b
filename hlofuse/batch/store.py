"""The folder of a run: parts as they come, then one file a table. A killed run goes on from its parts. A part
is one file a table. Its modules are written last, so what they name is whole."""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

from hlofuse.format import printable
from hlofuse.ir import HlofuseError
from .sources import SCHEMA, VERSION, Item, document, package, tables
from .work import Rows, Task

if TYPE_CHECKING:
    import duckdb

_ROWS, _SECONDS = 500, 20.0  # Modules and time after which a part is written: what a killed run loses at most
_BATCH = 100_000  # rows of a table that are written at once


class Store:
    """The folder of a run while it is written."""

    def __init__(self, folder: Path) -> None:
        """HlofuseError for a folder that cannot be written, or without the packages that write it. The folder
        is created with the first part. Parts of other schemas stay and are not read."""
        if ":/" in str(folder):
            raise HlofuseError(f"{printable(folder)} is in a store; write a folder here, then copy it")
        self.folder = folder
        self._parts = folder / f"parts-{VERSION}"
        self._waiting: Rows = {}
        self._since = time.monotonic()
        for needed in ("duckdb", "pyarrow"):
            package(needed)
        above = next(p for p in (self._parts, *self._parts.absolute().parents) if p.exists())
        if not (above.is_dir() and os.access(above, os.W_OK)):
            reason = "cannot be written" if above.is_dir() else "is not a directory"
            raise HlofuseError(f"cannot write {printable(folder)}: {printable(above)} {reason}")
        names = [p.name.partition("-")[0] for p in self._parts.glob("*-modules.parquet")]
        self._next = max(map(int, names), default=-1) + 1

    def finished(self, task: Task) -> set[str]:
        """Keys that need no more work: all but those that broke a limit that is another one now."""
        if not self._next:
            return set()
        files = [self._all("modules"), self._all("work")]
        found = connect().execute(document("queries")["finished"], [*files, task.limits])
        return {key for (key,) in found.fetchall()}

    def add(self, rows: Rows) -> None:
        """Take the rows of a unit; now and then they become a part."""
        for table, more in rows.items():
            self._waiting.setdefault(table, []).extend(more)
        if len(self._waiting["modules"]) >= _ROWS or time.monotonic() - self._since > _SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            try:
                self._parts.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise HlofuseError(f"cannot write {printable(self.folder)}: {error.strerror}") from None
            for name, schema in reversed(tables().items()):
                rows = self._waiting.get(name, [])
                path = self._parts / f"{self._next:06d}-{name}.parquet"
                written = path.with_suffix(".tmp")
                table = package("pyarrow").Table.from_pylist(rows, schema=schema)
                package("pyarrow.parquet").write_table(table, written)
                os.replace(written, path)
            self._next += 1
        self._waiting, self._since = {}, time.monotonic()

    def finish(self, items: Sequence[Item], task: Task) -> None:
        """Write every table, sorted, with the newest rows of each key that an item has, and `run.json`."""
        link = connect()
        columns = {name: [getattr(i, name) for i in items] for name in ("source", "path", "key")}
        link.register("items", package("pyarrow").table(columns))
        queries = document("queries")
        link.execute(queries["newest"], [self._all("modules")])
        for table, schema in tables().items():
            target, parts = self.folder / f"{table}.parquet", _quote(self._all(table))
            query = queries["merged_modules" if table == "modules" else "merged"]
            found: Any = link.sql(query.format(table=table, parts=parts)).to_arrow_reader(_BATCH)
            # DuckDB's own files depend on what it knows of the parts.
            with package("pyarrow.parquet").ParquetWriter(f"{target}.tmp", schema) as writer:
                for batch in found:
                    writer.write_batch(batch)
            os.replace(f"{target}.tmp", target)
        (self.folder / "run.json").write_text(json.dumps(task.settings, indent=2) + "\n")

    def _all(self, table: str) -> str:
        return str(self._parts / f"*-{table}.parquet")


def connect() -> "duckdb.DuckDBPyConnection":
    """A database in memory, on disk where it would need more than 2 GB."""
    config = {"memory_limit": "2GB", "temp_directory": gettempdir()}
    link: duckdb.DuckDBPyConnection = package("duckdb").connect(config=config)
    return link


def opened(
    folder: Path, link: "duckdb.DuckDBPyConnection | None" = None, prefix: str = ""
) -> "duckdb.DuckDBPyConnection":
    """A database with the tables of a finished run as views; those of a second run need a `prefix`.
    HlofuseError for a folder that is none, or whose tables are of another version."""
    name = printable(folder)
    try:
        info = json.loads((folder / "run.json").read_text())
    except (OSError, ValueError):
        raise HlofuseError(
            f"{name}: no finished run of hlofuse batch; expected run.json and its tables"
        ) from None
    if info.get("schema") != SCHEMA:
        raise HlofuseError(
            f"{name} has schema {info.get('schema')}, expected {SCHEMA}: run hlofuse batch there again"
        )
    link = link or connect()
    for table in tables():
        path = _quote(str(folder / f"{table}.parquet"))
        link.execute(f"CREATE VIEW {prefix}{table} AS SELECT * FROM read_parquet({path})")
    if not prefix:
        link.execute(document("queries")["listed"])
    return link


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
