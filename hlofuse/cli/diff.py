"""`hlofuse diff`: what changed between two modules, or two directories of them, fusion by fusion."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import click

from hlofuse.cli.common.options import limit_option, module_option, option, profile_option, report_options
from hlofuse.cli.common.output import Output
from hlofuse.cli.common.progress import progress_bar
from hlofuse.cli.common.request import TERMINAL, report_on
from hlofuse.inputs.profile import is_profile
from hlofuse.ir.errors import HlofuseError
from hlofuse.library.side_by_side import SECTIONS, accounts_of, check_devices, check_releases, read_both


@click.command("diff")
@click.argument("before", metavar="BEFORE", type=click.Path(allow_dash=True))
@click.argument("after", metavar="AFTER", type=click.Path(allow_dash=True))
@report_options
@limit_option(20, "Entries in each list; 0 shows all.")
@option("--only", SECTIONS, "Report only this part; repeatable. JSON always has all parts.", multiple=True)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only set the exit status.")
@click.option("--metadata", is_flag=True, help="Count op_name and source lines as differences.")
@click.option("--device", metavar="D", help="GPU for estimated times (hlofuse devices).")
@click.option("--device-after", metavar="D", help="GPU of AFTER, if different.")
@click.option("--xla", metavar="V|auto", help="jaxlib release of both sides.  [default: read from each dump]")
@click.option("--xla-after", metavar="V|auto", help="jaxlib release of AFTER, if different.")
@option(
    "--stage",
    ["input", "output"],
    "For two directories: compare the modules before (input) or after (output) fusion.  [default: output]",
)
@module_option
@profile_option
@click.option("--profile-after", metavar="PATH", type=click.Path(), help="The same for AFTER.")
def command(
    before: str,
    after: str,
    out: Output,
    limit: int,
    only: tuple[str, ...],
    quiet: bool,
    metadata: bool,
    device: str | None,
    device_after: str | None,
    xla: str | None,
    xla_after: str | None,
    stage: str | None,
    module: str | None,
    profile: str | None,
    profile_after: str | None,
) -> int:
    """Compare AFTER with BEFORE: measured kernels first, then fusions, then instructions.

    Any two modules compare: before and after a pass, two XLA releases, two devices, two versions of a
    program. Instructions are matched by structure; names and order never count as differences.

    Two directories are compared module by module, by name, with one summary. Two profiles, or two dumps with
    --profile and --profile-after, are compared kernel by kernel, by measured time.

    Exit status 0: same, 1: different, 2: wrong input or call.
    """
    from hlofuse.library.side_by_side import compared

    if out.file is not None and out.file.suffix.lower() in (".html", ".svg"):
        other = "explore" if out.file.suffix.lower() == ".html" else "render"
        raise HlofuseError(
            f"diff writes text, JSON or Markdown; hlofuse {other} BEFORE AFTER -o {out.file.name} shows both"
        )
    releases = xla, xla_after or xla
    accounts = partial(accounts_of, device=device, device_after=device_after, releases=releases)
    check_devices(device, device_after)
    check_releases(releases)
    directories = all(os.path.isdir(path) and not is_profile(path) for path in (before, after))
    if stage is not None and not directories:
        raise HlofuseError("--stage needs two directories")
    if directories:
        stage = stage or "output"
    measured = profile is not None or profile_after is not None
    if stage is not None and module is None and not measured and not _is_one(before, after):
        from hlofuse.diff.batch import diff_many
        from hlofuse.reports.diff import many

        with progress_bar("comparing") as progress:
            pairs = diff_many(Path(before), Path(after), stage, accounts, metadata, progress)
        if not quiet:
            out.report(
                text=lambda console: many.draw(pairs, console, limit=limit), json=lambda: many.as_dict(pairs)
            )
        return 0 if pairs.same else 1
    if measured:
        of_before = {"module": module, "device": device, "xla": xla, "profile": profile}
        of_after = {"device": device_after or device, "xla": releases[1], "profile": profile_after}
        second = report_on(after, of_before | of_after)
        found = report_on(before, of_before).diff(second, metadata=metadata)
    else:
        found = compared(
            *read_both(before, after, module, TERMINAL, stage),
            devices=(device, device_after),
            releases=releases,
            metadata=metadata,
            listener=TERMINAL,
        )
    if not quiet:
        out.show(found, limit=limit, only=only or SECTIONS)
    return 0 if found.data.same else 1


def _is_one(before: str, after: str) -> bool:
    """Folders of one program each, which need no pairing."""
    from hlofuse.inputs.dump_directory import is_corpus_case

    return all(is_corpus_case(Path(path)) for path in (before, after))
