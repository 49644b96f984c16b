"""`load`: the front door for everything that reads a module."""

from __future__ import annotations

import os
from pathlib import Path

from hlofuse.format.escape import printable
from hlofuse.inputs.choose_target import choose_target
from hlofuse.inputs.dump_directory import DumpDirectory, corpus_cases, corpus_file, require_case
from hlofuse.inputs.excerpt import Excerpt, find_module
from hlofuse.inputs.suggest import did_you_mean
from hlofuse.inputs.text import called, decode, read_bytes
from hlofuse.inputs.wire_format import PROTO, foreign_form, hlo_text
from hlofuse.ir.errors import HlofuseError, HloParseError
from hlofuse.ir.graph import Module
from hlofuse.ir.shape_check import first_misfit, misfit_error
from hlofuse.ir.text.reader import parse_module


def load(
    path: str | os.PathLike[str],
    module: str | None = None,
    *,
    target: str | None = None,
    limit: int | None = None,
) -> Module:
    """Read a module from a text dump (also gzipped), `-`, a dump directory or a corpus folder.

    A log, a Markdown page, a saved graph or a string literal is searched for the module; `module.text_note`
    says where it was found, and whether the text is cut short.

    StableHLO (text or bytecode) and HLO protos are lowered to HLO text by jaxlib, if that is installed.

    From a directory it is the module as it enters the fusion passes of `target`, which the dumps' names
    tell where it is not given; `module` picks by name, also from a file that holds several modules.
    `limit` bounds the bytes of text read (default: 1 GiB or HLOFUSE_MAX_INPUT_BYTES).

    Raises HlofuseError (HloParseError for a place in the text) with a message for the user.
    """
    file = Path(path)
    if str(path) != "-" and _is_directory(file):
        file = _in_directory(file, module, target or choose_target(file, module).name)
        module = None
    name = "<stdin>" if str(path) == "-" else str(file)
    data = read_bytes(file, limit)
    form = foreign_form(data)
    if form is not None:
        text = hlo_text(data, form, called(path))
    else:
        text = decode(data, called(path), as_module=False)
    found = find_module(text, called(path), module)
    parsed = _parsed(found, name)
    parsed.filename = name
    parsed.lowered_from = form if form != PROTO else None
    return parsed


_NEURONS = "API_VERSION_UNSPECIFIED"
"""Neuron's value of `api_version`. It means the default, and XLA's parser refuses it."""


def _parsed(found: Excerpt, name: str) -> Module:
    """The first reading that can be parsed; the error of the last, or where its shapes do not fit."""
    last = len(found.readings) - 1
    for number, (text, note) in enumerate(found.readings):
        try:
            module = parse_module(text, name)
        except HloParseError as error:
            if number == last:
                raise found.placed(error) from None
            continue
        misfit = first_misfit(module)
        if misfit is not None:
            raise found.placed(misfit_error(text, *misfit, name))
        module.text_note = note
        if _NEURONS in text:
            for call in module.instructions():
                if call.attributes.raw("api_version") == _NEURONS:
                    call.attributes = call.attributes.without("api_version")
        return module
    raise AssertionError("there is no reading")


def _in_directory(folder: Path, module: str | None, target: str) -> Path:
    """The pass's input in a dump directory, a corpus folder, or a folder of those."""
    case = corpus_file(folder, "before")
    if case is not None:
        require_case(folder, module)
        return case
    cases = corpus_cases(folder)
    if not cases:
        return DumpDirectory(folder).pick(module).best(target)
    names = [c.name for c in cases]
    if module is None and len(names) == 1:
        module = names[0]
    if module is None or module not in names:
        hint = did_you_mean(module, names) if module is not None else ""
        problem = f"no {printable(module)}{hint}" if module is not None else "several modules"
        listed = ", ".join(map(printable, names[:12])) + (" …" if len(names) > 12 else "")
        raise HlofuseError(f"{printable(str(folder))} has {problem}; choose one with --module: {listed}")
    return _in_directory(folder / module, None, target)


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
