"""A directory of pictures, written when all of them are drawn."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from hlofuse.cli.common.output import write_file
from hlofuse.cli.common.progress import progress_bar
from hlofuse.format.escape import printable
from hlofuse.ir.errors import HlofuseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hlofuse.ir.graph import Module
    from hlofuse.render import Options
    from hlofuse.replay import Replay


def is_directory(output: str) -> bool:
    """A directory that is there, or a name that ends as one of a directory."""
    return output.endswith(("/", os.sep)) or os.path.isdir(output)


def write_atlas(
    folder: Path, shown: Module | Replay, view: str | None, options: Options, caption: Sequence[str]
) -> None:
    """Draw everything, then write it: the overview last, so that what it leads to is there."""
    from hlofuse.render import Drawing
    from hlofuse.render.atlas import INDEX, atlas

    pages = atlas(shown, view, options, caption)
    drawn: dict[str, str] = {}
    # The layouts are programs of their own, which threads can wait for.
    with progress_bar("drawing") as progress, ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, svg in zip(pages, pool.map(Drawing.to_svg, pages.values()), strict=True):
            drawn[name] = svg
            progress(len(drawn), len(pages))
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as e:
        raise HlofuseError(f"cannot make {printable(str(folder))}: {e.strerror or e}") from None
    for name in sorted(drawn, key=lambda name: name == INDEX):
        write_file(folder / name, drawn[name])
