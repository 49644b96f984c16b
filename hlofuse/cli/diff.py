"""`hlofuse diff`: what changed between two modules, or two directories of them, fusion by fusion."""

from pathlib import Path

import click

from hlofuse.inputs.many import Many, modules_at
from hlofuse.ir import HlofuseError, Strings, replace
from hlofuse.library.options import SILENT
from hlofuse.library.report import Report
from hlofuse.library.side_by_side import SECTIONS, check_sides, compared, differences, is_folder
from hlofuse.reports.diff import many as summary
from .common.messages import progress_bar
from .common.options import INPUT, flag, limit_option, module_option, option, profile_option, report_options
from .common.output import Output
from .common.request import TERMINAL, options_of


@click.command("diff")
@click.argument("before", metavar="BEFORE", type=INPUT)
@click.argument("after", metavar="AFTER", type=INPUT)
@report_options
@limit_option(20, "Entries in each list; 0 shows all.")
@option("--only", SECTIONS, "Report only this part; repeatable. JSON always has all parts.", multiple=True)
@flag("--metadata", "Count op_name and source lines as differences.")
@option("--device", "D", "GPU or TPU for estimated times (hlofuse devices).")
@option("--device-after", "D", "GPU of AFTER, if different.")
@option("--xla", "V|auto", "jaxlib release of both sides.  [default: read from each dump]")
@option("--xla-after", "V|auto", "jaxlib release of AFTER, if different.")
@module_option
@profile_option
@option("--profile-after", "PATH", "The same for AFTER.", type=click.Path())
def command(
    before: str,
    after: str,
    out: Output,
    limit: int,
    only: Strings,
    metadata: bool,
    device: str | None,
    device_after: str | None,
    xla: str | None,
    xla_after: str | None,
    module: str | None,
    profile: str | None,
    profile_after: str | None,
) -> int:
    """Compare AFTER with BEFORE: measured kernels first, then fusions, then instructions.

    Any two modules compare: before and after a pass, two XLA releases, two devices, two versions of a
    program. Instructions are matched by structure; names and order never count as differences.

    Two directories are compared by their final kernels: XLA's own, or replayed where its final module was
    not dumped. Of several modules there is one summary, by name. Two profiles, or two dumps with --profile
    and --profile-after, are compared kernel by kernel, by measured time.

    Exit status 0: same, 1: different, 2: wrong input or call."""
    if out.file is not None and out.file.suffix.lower() in (".html", ".svg"):
        other = "explore" if out.file.suffix.lower() == ".html" else "render"
        raise HlofuseError(
            f"diff writes text, JSON or Markdown; hlofuse {other} BEFORE AFTER -o {out.file.name} shows both"
        )
    check_sides(device, device_after, (xla, xla_after))
    if before == after == "-":
        raise HlofuseError("only one of BEFORE and AFTER can be standard input")
    of_before = {"module": module, "device": device, "xla": xla, "profile": profile}
    of_after = {"device": device_after or device, "xla": xla_after or xla, "profile": profile_after}
    listener = replace(TERMINAL, note=SILENT.note)  # the first lines have the device and its evidence
    requests = options_of(before, of_before), options_of(after, of_before | of_after)
    first, second = (Report(replace(options, listener=listener)) for options in requests)
    folders = is_folder(first.options) and is_folder(second.options)
    measured = profile is not None or profile_after is not None
    old, new = (modules_at(Path(p)) if folders else Many() for p in (before, after))
    if module is None and not measured and max(len(old.files), len(new.files)) > 1:
        with progress_bar("comparing") as progress:
            pairs = differences(first, second, old, new, metadata, progress)
        out.report(
            text=lambda console: summary.draw(pairs, console),
            json=lambda: summary.as_dict(pairs),
            limit=limit,
        )
        return 0 if pairs.same else 1
    found = compared(first, second, metadata=metadata)
    out.show(found, limit=limit, only=only or SECTIONS)
    return 0 if found.data.same else 1
