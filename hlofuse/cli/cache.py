"""`hlofuse cache`: the replays that later questions begin with."""

import click

from hlofuse.format import bytes_text, plural, printable
from hlofuse.library.cache import LIMIT, VARIABLE, cache_folder, entries, remove
from .common.options import flag


@click.command("cache")
@flag("--clear", "Remove every entry.")
def command(clear: bool) -> int:
    """Show the cache of replays, or clear it.

    explain, why, kernels and memory store what they replayed, and later questions about the same input begin
    with it. HLOFUSE_CACHE names another folder; HLOFUSE_CACHE=off and --no-cache do without."""
    folder, found = cache_folder(), entries()
    if folder is None:
        click.echo(f"The cache is off ({VARIABLE}).")
        return 0
    for path in found if clear else ():
        remove(path)
    size = bytes_text(sum(stat.st_size for stat in found.values()))
    end = "removed" if clear else f"of at most {bytes_text(LIMIT)}"
    click.echo(f"{printable(str(folder))}: {plural(len(found), 'entry', 'entries')}, {size} {end}")
    return 0
