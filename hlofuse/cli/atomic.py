"""Files appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from hlofuse.ir.errors import HlofuseError


def write_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Write to a temporary file beside `path`, then rename it; `-` is standard output."""
    if str(path) == "-":
        import click

        click.echo(text, nl=False)
        return
    target = Path(path)
    if target.exists() and not target.is_file():
        # A device or a pipe cannot be renamed over.
        try:
            target.write_text(text)
        except OSError as e:
            raise HlofuseError(f"cannot write {target}: {e.strerror}") from e
        return
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as e:
        raise HlofuseError(f"cannot write {target}: {e.strerror}") from e
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, target)
    except OSError as e:
        raise HlofuseError(f"cannot write {target}: {e.strerror}") from e
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
