"""One file of HTML: markup, style, scripts and data, and a policy that lets in nothing else."""

import base64
import hashlib
from importlib.resources import files

from hlofuse.explorer.encode import encoded
from hlofuse.explorer.model import Page

SCRIPTS = tuple(
    (
        "passes_data data state phrases dom layers order layout scene picture overview pane lists panels"
        " details passes timeline search legend keys app"
    ).split()
)
"""In the order in which they build on each other; together they are one module."""

_STYLES = ("colours", "layout", "parts")


def page_html(page: Page) -> str:
    """The page, complete: it loads nothing and runs nothing but its own script."""
    script = "".join(_part(f"{name}.js") for name in SCRIPTS)
    style = "".join(_part(f"{name}.css") for name in _STYLES)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)};"
        " base-uri 'none'; form-action 'none'"
    )
    parts = {
        "{{policy}}": policy,
        "{{style}}": style,
        "{{script}}": script,
        "{{data}}": encoded(page),
    }
    out = _part("page.html")
    for mark, text in parts.items():
        before, _, after = out.partition(mark)
        out = before + text + after
    return out


def _part(name: str) -> str:
    return files("hlofuse.explorer").joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What the policy knows an inline script or style by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
