"""Reports as one HTML page: no script, nothing from elsewhere, text from a dump as text."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from hlofuse.format.escape import printable

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_CSS = """
:root{color-scheme:light dark;--ink:#1f2328;--faint:#59636e;--line:#d1d9e0;--paper:#fff;--soft:#f6f8fa;
--good:#1a7f37;--bad:#b42318;--note:#8a5a00}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--faint:#9198a1;--line:#3d444d;--paper:#0d1117;
--soft:#151b23;--good:#57ab5a;--bad:#ff7b72;--note:#d8a657}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:2rem auto;
max-width:76rem;padding:0 1.2rem}
h1{font-size:1.35rem;margin:0 0 .4rem}h2{font-size:1.08rem;margin:2rem 0 .5rem}h2 small{color:var(--faint);
font-weight:normal}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;
padding:.35rem .9rem .35rem 0;
border-bottom:1px solid var(--line);overflow-wrap:anywhere}th{color:var(--faint);font-weight:normal}
td:first-child{min-width:9rem}td.n,th.n{text-align:right;white-space:nowrap;
font-variant-numeric:tabular-nums;padding-left:.9rem;overflow-wrap:normal}
td.k{white-space:nowrap;font-weight:600;overflow-wrap:normal}.good{color:var(--good)}.bad{color:var(--bad)}
.note{color:var(--note)}.faint,small{color:var(--faint);font-size:.87rem}
dl{display:flex;flex-wrap:wrap;gap:.5rem 2.2rem;margin:.6rem 0 0}dt{color:var(--faint);font-size:.87rem}
dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums}
figure{margin:0;overflow:auto;max-height:85vh;border:1px solid var(--line);border-radius:10px;background:#fff}
figure svg{display:block}summary{cursor:pointer;margin:1.6rem 0 .5rem;font-weight:600}
@media print{figure{max-height:none;overflow:visible}figure svg{max-width:100%;height:auto}}
"""


def esc(text: str) -> str:
    """`text` as text: no markup, no control characters."""
    return html.escape(printable(text))


def page(title: str, body: Iterable[str]) -> str:
    """The whole document; `body` is HTML already."""
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{esc(title)}</title>\n<style>{_CSS}</style></head><body>",
            *body,
            "</body></html>\n",
        ]
    )


def figures(pairs: Iterable[tuple[str, str]]) -> str:
    """Labelled figures in a row."""
    return "<dl>" + "".join(f"<div><dt>{esc(a)}</dt><dd>{esc(b)}</dd></div>" for a, b in pairs) + "</dl>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A table; cells are HTML already, or begin with `<td`. Columns in `right` hold figures."""

    def cell(k: int, text: str) -> str:
        return text if text.startswith("<td") else f"<td{' class=n' if k in right else ''}>{text}</td>"

    heads = "".join(
        f'<th scope="col"{" class=n" if k in right else ""}>{esc(h)}</th>' for k, h in enumerate(header)
    )
    lines = ["<tr>" + "".join(cell(k, c) for k, c in enumerate(row)) + "</tr>" for row in rows]
    head = f"<thead><tr>{heads}</tr></thead>" if any(header) else ""
    return f"<table>{head}<tbody>{''.join(lines)}</tbody></table>"


def inline_svg(svg: str) -> str:
    """One of our own pictures as part of a page; what it shows was made safe when it was drawn."""
    return f"<figure>{svg[svg.index('<svg') :]}</figure>"
