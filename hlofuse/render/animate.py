"""The fusion decisions of a replay one after the other, as one SVG that moves by CSS alone.

It ends in the final state. A viewer that does not animate, or is to reduce motion, shows nothing else.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import NamedTuple
from xml.sax.saxutils import escape

from hlofuse.format.escape import shorten
from hlofuse.format.units import plural
from hlofuse.ir import HlofuseError
from hlofuse.render.compose import before_of
from hlofuse.render.dot import to_dot
from hlofuse.render.drawing import Drawing, document
from hlofuse.render.options import Options
from hlofuse.render.palette import ALERT, FAINT, FONT, INK, PALE, STYLES, cluster_style
from hlofuse.render.scene import Scene
from hlofuse.replay import Replay

MOST = 150
"""Decisions in one animation at most: nobody follows more."""

SECONDS = 3
"""For each decision, and for the state before the first."""

_COLORS = ("#0072b2", "#b84e00", "#00805c", "#a8487f", "#6546a3", "#8f8400")
_NARROWEST = 560.0
_LINE = 17.0
_PAD = 24.0
_CSS = (
    ".progress{transform-box:fill-box;animation:progress %ds linear}@keyframes progress{0%%{transform:scaleX(0)}}"
    "svg:active *{animation-play-state:paused!important}"
    "@media (prefers-reduced-motion:reduce){svg *{animation:none!important}}"
)


class Decision(NamedTuple):
    """A fusion or a refusal."""

    lines: tuple[str, str]
    """What is decided, and why."""
    producer: Collection[str]
    """The instructions of the module before fusion that the producer holds."""
    consumer: Collection[str]
    kernel: Collection[str] = ()
    """Those of the fusion that holds both from then on; empty for a refusal."""


def animation(
    replay: Replay, decisions: Sequence[Decision], options: Options, caption: Sequence[str] = ()
) -> "Animation":
    """The decisions over the module before fusion; with a focus those with both ends in the picture.

    Raises HlofuseError where there are none, too many to follow, or no room for every box.
    """
    scene = before_of(replay, options)
    scene.caption = list(caption)
    for n, arrow in enumerate(a for p in scene.panels for a in p.arrows):
        arrow.key = f"arrow{n}"
    borders = _borders(scene)
    closer = (
        "a smaller --radius" if options.focus is not None else "--focus NAME for those near an instruction"
    )
    if options.focus is not None:
        decisions = [
            d for d in decisions if all(any(n in borders for n in e) for e in (d.producer, d.consumer))
        ]
    if not decisions:
        raise HlofuseError("there is no fusion decision to animate here")
    count = plural(len(decisions), "decision")
    if len(decisions) > MOST:
        raise HlofuseError(f"an animation has at most {MOST} decisions, and here are {count}: give {closer}")
    if any(box.style == "part" for p in scene.panels for box in p.all_boxes()):
        raise HlofuseError(f"{count} do not fit into one picture: give {closer} or a greater --max-nodes")
    return Animation(to_dot(scene), scene, list(scene.notices), decisions)


@dataclass
class Animation(Drawing):
    """The final state, and in its SVG the decisions that led there."""

    decisions: Sequence[Decision] = field(default=(), repr=False)

    def to_svg(self) -> str:
        """A self-contained SVG: no script, link or font. Needs Graphviz."""
        (width, height), last = self.size(), len(self.decisions) + 1
        width = max(width, _NARROWEST)
        captions = [_wrapped(lines, width - 2 * _PAD) for lines in self._captions()]
        strip = _LINE * max(map(len, captions)) + _PAD
        looks = self._looks(last)
        body = [f'<g transform="translate(0 {strip:g})">\n', *self.content(), "</g>\n"]
        for k, lines in enumerate(captions):
            looks[f".caption{k}"] = _visible(k) | ({k + 1: "visibility:hidden"} if k < last else {})
            body.append(
                f'<g class="caption{k}" visibility="{"hidden" if k < last else "visible"}">{lines}</g>\n'
            )
        body.append(
            f'<rect class="progress" x="{_PAD:g}" y="{strip - 4:g}" width="{width - 2 * _PAD:g}" height="2" '
            f'fill="{PALE}"/>\n'
        )
        css = "".join(_rule(n, *look, last) for n, look in enumerate(looks.items()))
        return document(
            width, height + strip, self.scene.title, self.description, body, css + _CSS % (SECONDS * last)
        )

    def to_bytes(self, fmt: str) -> bytes:
        """The animation as `svg`; in another of `FORMATS` the final state."""
        return self.to_svg().encode() if fmt == "svg" else super().to_bytes(fmt)

    def _captions(self) -> list[tuple[str, str]]:
        count = len(self.decisions)
        return [
            (
                f"Before fusion: {plural(count, 'decision')} follow",
                "Thick borders: what is decided. An arrow becomes pale when its value stays inside a kernel.",
            ),
            *((f"{k} of {count}  {d.lines[0]}", d.lines[1]) for k, d in enumerate(self.decisions, 1)),
            ("Final state", "Boxes with borders of one color, or in one frame, are one kernel."),
        ]

    def _looks(self, last: int) -> dict[str, dict[int, str]]:
        """By CSS selector: from which decision on the elements look how."""
        borders = _borders(self.scene)
        looks = {name: {0: look} for name, (_, look) in borders.items()}
        settled = {name: look for name, (_, look) in borders.items()}
        colors: dict[str, str] = {}
        for k, d in enumerate(self.decisions, 1):
            ends = [n for n in dict.fromkeys((*d.consumer, *d.producer)) if n in looks]
            color = next((colors[n] for n in ends if n in colors), _COLORS[k % len(_COLORS)])
            for name in d.kernel:
                settled[name], colors[name] = _border(color, 2.5), color
            for name in ends:
                looks[name] |= {
                    k: _border(color, 5) if d.kernel else _border(ALERT, 4, "7 3"),
                    k + 1: settled[name],
                }
        found = {f"#{borders[name][0]} :is(polygon,path,ellipse)": look for name, look in looks.items() if len(look) > 1}
        for panel in self.scene.panels:
            name_of = {b.key: f.name or b.name for f in panel.outlines for b in f.boxes}
            name_of |= {b.key: b.name for b in panel.boxes}
            for arrow in panel.arrows:
                k = self._fused_at({name_of[arrow.source_box], name_of[arrow.head]}, last)
                if k < last and not arrow.inside:
                    found[f"#{arrow.key}"] = {0: "opacity:1", k: "opacity:.25"}
            for outline in panel.outlines:
                if not outline.kind:
                    k = self._fused_at({b.name for b in outline.boxes}, last)
                    found[f"#{outline.key},.{outline.key}"] = _visible(k)
        return found

    def _fused_at(self, names: Collection[str], last: int) -> int:
        """The decision after which one fusion holds all of these; `last` if none does."""
        fused = (k for k, d in enumerate(self.decisions, 1) if all(n in d.kernel for n in names))
        return next(fused, last)


def _borders(scene: Scene) -> dict[str, tuple[str, str]]:
    """By name the key of the box or of the fusion drawn open, and how its border looks at first."""
    found = {}
    for panel in scene.panels:
        for o in panel.outlines:
            if o.name:
                found[o.name] = o.key, _border(cluster_style(o.kind)["color"], 3 if o.marked else 1.3)
        for b in panel.boxes + [b for o in panel.outlines if not o.kind for b in o.boxes]:
            if b.name:
                found[b.name] = b.key, _border(STYLES[b.style].look["color"], 3 if b.marked else 1)
    return found


def _border(color: str, width: float, dashes: str = "none") -> str:
    return f"stroke:{color};stroke-width:{width:g};stroke-dasharray:{dashes}"


def _visible(start: int) -> dict[int, str]:
    return {0: "visibility:hidden"} | {start: "visibility:visible"}


def _rule(n: int, selector: str, looks: dict[int, str], last: int) -> str:
    stops = "".join(f"{100 * k / last:.2f}%{{{look}}}" for k, look in sorted(looks.items()))
    final = looks[max(looks)]
    return f"@keyframes k{n}{{{stops}}}{selector}{{{final};animation:k{n} {SECONDS * last}s step-end}}\n"


def _wrapped(lines: tuple[str, str], width: float) -> list[str]:
    """A bold line and a plain one as SVG, as many lines as they need."""
    found: list[str] = []
    for text, size, look in zip(
        lines, (13, 11), (f'fill="{INK}" font-weight="bold"', f'fill="{FAINT}"'), strict=True
    ):
        for line in wrap(text, int(width / size / 0.54)):
            found.append(
                f'<text x="{_PAD:g}" y="{_LINE * (len(found) + 1) + 4:g}" font-family="{FONT}" '
                f'font-size="{size}" {look}>{escape(line)}</text>'
            )
    return found
