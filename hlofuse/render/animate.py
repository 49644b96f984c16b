"""The fusion decisions of a replay in sequence, as one SVG animated by CSS alone.

It ends in the final state, which viewers without animation, or with reduced motion, show alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.sax.saxutils import escape

from hlofuse.compilation import Compilation
from hlofuse.format.escape import shorten
from hlofuse.ir import HlofuseError
from hlofuse.render.compose import future_scene
from hlofuse.render.dot import to_dot
from hlofuse.render.drawing import Drawing
from hlofuse.render.palette import ALERT, FONT, INK, STYLES
from hlofuse.render.scene import Options

MOST = 150  # decisions in one animation: more are hard to follow
_SECONDS = 3  # for each decision, and for the state before the first
_FIRST = "Thick borders: what is decided. An arrow becomes pale when its value stays inside a kernel."
_LAST = ("Final state", "Boxes in one frame, or with the same number K, are one kernel.")
_HIDDEN, _VISIBLE = "visibility:hidden", "visibility:visible"
_DARK, _PALE = (f"stroke-opacity:{x};fill-opacity:{x}" for x in (1, 0.25))
_BORDER = "stroke:{};stroke-width:{};stroke-dasharray:{}"
_FUSES, _IS_FUSED = (_BORDER.format("#0969da", width, "none") for width in (5, 2.5))
_REFUSED = _BORDER.format(ALERT, 4, "7 3")
_CSS = (
    "svg:active *{animation-play-state:paused!important}"
    "@media (prefers-reduced-motion:reduce){svg *{animation:none!important}}"
)


class Decision(NamedTuple):
    """A fusion or a refusal, with the instructions of producer and consumer in the module before fusion."""

    text: str
    reason: str
    ends: tuple[set[str], set[str]]
    is_fused: bool


def animation(
    replay: Compilation, decisions: Sequence[Decision], options: Options, caption: Sequence[str] = ()
) -> "Animation":
    """The decisions over the module before fusion; raises `HlofuseError` for none, or more than `MOST`."""
    scene = future_scene(replay, options)
    scene.caption = list(caption)
    for n, arrow in enumerate(a for p in scene.panels for a in p.arrows):
        arrow.key = f"arrow{n}"
    if options.focus is not None:
        names = {b.name for p in scene.panels for b in p.all_boxes()}
        decisions = [d for d in decisions if all(names & end for end in d.ends)]
    if not decisions:
        raise HlofuseError("no fusion is decided here: there is nothing to animate")
    if len(decisions) > MOST:
        less = "--focus NAME" if options.focus is None else "a smaller --radius"
        raise HlofuseError(f"{len(decisions):,} decisions are too many to show (at most {MOST}): give {less}")
    return Animation(to_dot(scene), scene, list(scene.notices), decisions)


@dataclass
class Animation(Drawing):
    """The final state; its SVG animates the decisions."""

    decisions: Sequence[Decision] = field(default=(), repr=False)

    def to_bytes(self, fmt: str) -> bytes:
        """The animation as `svg`; in another of `FORMATS` the final state."""
        return self.to_svg().encode() if fmt == "svg" else super().to_bytes(fmt)

    def size(self) -> tuple[float, float]:
        """Width and height in points, with the captions. Needs Graphviz."""
        width, height = super().size()
        return max(width, 700), height + 44

    def content(self) -> list[str]:
        """The elements of the SVG: the captions, the picture below, and a style that animates both."""
        out = ['<g transform="translate(0 44)">\n', *super().content(), "</g>\n"]
        count, looks, width = len(self.decisions), self._styles(), self.size()[0]
        decided = [(f"{k} of {count}: {d.text}", d.reason) for k, d in enumerate(self.decisions, 1)]
        for k, (head, reason) in enumerate([(f"Before decision 1 of {count}", _FIRST), *decided, _LAST]):
            looks[f".at{k}"] = {0: _HIDDEN} | {k: _VISIBLE} | ({k + 1: _HIDDEN} if k <= count else {})
            out.append(
                f'<text class="at{k}" visibility="{"hidden" if k <= count else "visible"}" fill="{INK}" '
                f'font-family="{FONT}" font-size="13"><tspan x="24" y="24" font-weight="bold">'
                f'{escape(shorten(head, int(width / 7.5)))}</tspan><tspan x="24" y="42" font-size="11">'
                f"{escape(shorten(reason, int(width / 5.7)))}</tspan></text>\n"
            )
        css = _CSS
        for n, (selector, look) in enumerate(looks.items()):
            frames = "".join(f"{100 * k / (count + 1):.2f}%{{{look[k]}}}" for k in sorted(look))
            timing = f"animation:k{n} {_SECONDS * (count + 1)}s step-end"
            css += f"\n@keyframes k{n}{{{frames}}}{selector}{{{look[max(look)]};{timing}}}"
        return [f"<style>{css}</style>\n", *out]

    def _styles(self) -> dict[str, dict[int, str]]:
        """Styles of elements by CSS selector and first decision."""
        found: dict[str, dict[int, str]] = {}
        border: dict[str, dict[int, str]] = {}
        decided = [(k, set.union(*d.ends), d.is_fused) for k, d in enumerate(self.decisions, 1)]

        def fused_at(names: set[str]) -> int:
            return next((k for k, ops, is_fused in decided if is_fused and names <= ops), len(decided) + 1)

        for panel in self.scene.panels:
            boxes = {b.key: b for b in panel.all_boxes()}
            for b in boxes.values():
                color = STYLES[b.style].look["color"]
                border[b.name] = {0: _BORDER.format(color, 3 if b.marked else 1, "none")}
                found[f"#{b.key} :is(polygon,path,ellipse)"] = border[b.name]
            for arrow in panel.arrows:
                k = fused_at({boxes[arrow.source_box].name, boxes[arrow.head].name})
                found[f"#{arrow.key}"] = {0: _DARK} | ({k: _PALE} if k <= len(decided) else {})
            for o in panel.outlines:
                k = fused_at({b.name for b in o.boxes})
                found[f"#{o.key},.{o.key}"] = {0: _HIDDEN, k: _VISIBLE}
        fused = set[str]()
        for k, ops, is_fused in decided:
            fused |= ops if is_fused else set()
            for n in border.keys() & ops:
                border[n][k] = _FUSES if is_fused else _REFUSED
                border[n][k + 1] = _IS_FUSED if n in fused else border[n][0]
        return found
