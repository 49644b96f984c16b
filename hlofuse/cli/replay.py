"""`hlofuse replay`: the module as XLA's fusion passes would leave it."""

from __future__ import annotations

import json
from pathlib import Path

import click

from hlofuse.pipelines.targets import TARGETS


@click.command("replay")
@click.argument("input", metavar="INPUT")
@click.option("-o", "--output", required=True, metavar="OUT.hlo", help="Where to write the module; `-` for "
"standard output.")
@click.option("--target", type=click.Choice(list(TARGETS)), default="cpu", show_default=True, help="Whose "
"passes to repeat.")
@click.option("--device", metavar="D", help="Device to decide for; targets without a cost model need none.")
@click.option("--trace", metavar="TRACE.jsonl", help="Also write every decision, one JSON object a line.")
@click.option(
    "--ids",
    metavar="FILE|none",
    help="Unique ids of the instructions (.hlo.pb). Targets that do not break ties by them ignore it.",
)
@click.option("--option", metavar="NAME", help="A variant of the target's pipeline, see `hlofuse targets`.")
@click.option("--module", metavar="NAME", help="The module to take from a dump directory.")
@click.option("--keep-passes", metavar="DIR", help="Also write the module after each pass, as "
"DIR/NN-PASS.hlo.")
@click.option("--set", "overrides", multiple=True, metavar="NAME=VALUE", help="What if a rule's knob had "
"another value?")
@click.option("--disable", multiple=True, metavar="CODE", help="What if this rule did not exist?")
def command(
    input: str,
    output: str,
    target: str,
    device: str | None,
    trace: str | None,
    ids: str | None,
    option: str | None,
    module: str | None,
    keep_passes: str | None,
    overrides: tuple[str, ...],
    disable: tuple[str, ...],
) -> None:
    """Write the module in INPUT as XLA's fusion passes would leave it.

    INPUT is a text dump of the module before fusion (also gzipped), `-`, or a dump directory.
    """
    from hlofuse.cli.atomic import write_atomically
    from hlofuse.inputs import load
    from hlofuse.ir.printer import print_module
    from hlofuse.pipelines import replay
    from hlofuse.rules.parse_settings import parse_settings

    settings = parse_settings(overrides, disable)
    before = load(input, module, target=target)
    result = replay(
        before, target, device=device, option=option, keep_modules=keep_passes is not None, settings=settings
    )
    if keep_passes is not None:
        folder = Path(keep_passes)
        folder.mkdir(parents=True, exist_ok=True)
        for number, done in enumerate((p for p in result.passes if p.changed), 1):
            write_atomically(folder / f"{number:02d}-{done.name}.hlo", done.module_text or "")
    if trace is not None:
        lines = (json.dumps(e.to_json(), ensure_ascii=False) for e in result.events)
        write_atomically(trace, "".join(f"{line}\n" for line in lines))
    write_atomically(output, print_module(result.after))
