"""Output of reports to the terminal, a pipe or a file, in colour or not, all or nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlofuse.format import printable
from hlofuse.ir import HlofuseError, Json, Record

if TYPE_CHECKING:
    from hlofuse.format.terminal import Page
    from hlofuse.library.answer import Answer
    from hlofuse.reports.check import Check

CHECK_FORMATS = tuple("text json markdown github sarif junit".split())
"""Formats of a check: github annotates source lines, markdown fits the summary of a job."""
PIPE_WIDTH = 100  # Columns where there is no terminal to ask and COLUMNS is not set


class Output(Record):
    """In which form a report comes out, and where: the options of `options.report_options`."""

    form: str
    color: str
    file: Path | None

    def write(self, text: str) -> None:
        """Print the text, or write it to the file."""
        emit(text, self.file)

    def draw(self, draw: Callable[[Page], None]) -> None:
        """Write what `draw` prints on a console made for the place."""
        emit(rendered(draw, self.color, self.file), self.file)

    def report(self, *, text: Callable[[Page], None], json: Callable[[], Json], **how: Any) -> None:
        """Write what is about no module in one of the three forms; Markdown is what `text` prints."""
        from hlofuse.library.answer import Answer

        self.show(Answer("report", lambda: None, body=text, json=lambda _: json()), **how)

    def show(self, answer: Answer[Any], **how: Any) -> None:
        """Write an answer of the library; `how` are options of its text, such as `limit`."""
        if self.form == "json":
            from json import dumps

            self.write(dumps(answer.to_json(), indent=2))
        elif self.form == "text":
            self.draw(lambda console: answer.draw(console, **how))
        else:
            self.write(answer.to_markdown(**how))

    def show_check(self, answer: Answer[Check], root: Path, **how: Any) -> None:
        """Write a check in any of `CHECK_FORMATS`; `root` is the project that paths are relative to."""
        if self.form not in ("sarif", "junit", "github"):
            self.show(answer, **how)
            return
        from hlofuse.reports.check.ci import check_github, check_junit, check_sarif

        found = answer.data
        if self.form == "sarif":
            from json import dumps

            from hlofuse import __version__

            self.write(dumps(check_sarif(found, __version__), indent=2))
        else:
            self.write(check_junit(found) if self.form == "junit" else check_github(found, root))


def emit(text: str | bytes, output: Path | None = None) -> None:
    """Print `text`, or write it to the file `output`."""
    if isinstance(text, str) and not text.endswith("\n"):
        text += "\n"
    if output is not None and str(output) != "-":
        save(output, text)
        return
    if isinstance(text, bytes):
        sys.stdout.buffer.write(text)
        return
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def rendered(draw: Callable[[Page], None], color: str = "auto", output: Path | None = None) -> str:
    """The output of `draw` on a rich console for the report's destination."""
    from hlofuse.format.terminal import printed

    to_terminal = output is None and sys.stdout.isatty()
    colored = color == "always" or (color == "auto" and to_terminal and _wants_color())
    return printed(draw, _width(to_terminal), colored=colored)


def _wants_color() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _width(to_terminal: bool) -> int:
    fallback = 80 if to_terminal else PIPE_WIDTH
    if to_terminal:
        import shutil  # as below: slow to import, and few reports go to a terminal or a file

        columns = shutil.get_terminal_size((fallback, 24)).columns
    else:
        text = os.environ.get("COLUMNS", "")
        columns = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else fallback
    return min(max(columns, 40), 400)


def save(path: Path, content: str | bytes) -> None:
    """Write the file that an option names, and report it on standard error."""
    from .messages import wrote

    write_file(path, content)
    wrote(path)


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file, or what a link points to, whole or not at all: to a temporary one, then renamed."""
    import shutil
    from secrets import token_hex

    data = content.encode() if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)  # /dev/stdout and the like cannot be replaced
            return
        path = path.resolve()
        temporary = path.with_name(f".{path.name[:40]}.{token_hex(4)}")
        try:
            with temporary.open("xb") as file:
                file.write(data)
            if path.exists():
                shutil.copymode(path, temporary)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as e:
        raise HlofuseError(f"cannot write {printable(str(path))}: {e.strerror or e}") from None
    except ValueError:
        raise HlofuseError(f"cannot write {printable(str(path))}: not a file name") from None
