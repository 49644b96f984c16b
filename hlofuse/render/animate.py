"""A replay as a film: the module as it was, and fusions that grow over it, one decision a frame, looping.

The picture moves by CSS alone, so that it plays wherever an SVG is shown as an image; who has asked for less
motion sees its last frame.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from hlofuse.format.escape import shorten
from hlofuse.format.units import plural
from hlofuse.ir import HlofuseError
from hlofuse.render.compose import before_of
from hlofuse.render.dot import FONT, to_dot
from hlofuse.render.drawing import Drawing
from hlofuse.render.options import Options
from hlofuse.render.palette import ALERT, FAINT, INK
from hlofuse.render.svg import size as svg_size
from hlofuse.replay import Replay
from hlofuse.trace import Event

MOST_STEPS = 150
"""A film of more frames nobody watches."""

SECONDS = 1.2
"""For each decision; the first and the last frame stay twice as long."""

_STRIP = 36.0
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_FIRST = re.compile(r'<g [^>]*class="(?:node|edge)"')
_COLORS = ("#0072b2", "#b84e00", "#00805c", "#a8487f", "#6546a3", "#8f8400")

Area = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(slots=True)
class _Step:
    """One decision, and the operations that lie in one fusion from it on."""

    event: Event
    first: tuple[str, ...]
    second: tuple[str, ...]
    together: tuple[str, ...]
    until: int
    """The step at which the fusion has grown into another; the number of steps where it stays."""


def animate(replay: Replay, options: Options, caption: Sequence[str] = ()) -> str:
    """The film as an SVG. HlofuseError for a module too big to be followed, or without a fusion."""
    steps = _steps(replay)
    if not steps:
        raise HlofuseError("nothing is fused here: there is nothing to animate")
    if len(steps) > MOST_STEPS:
        raise HlofuseError(
            f"{plural(len(steps), 'decision')} are too many to follow (at most {MOST_STEPS}): "
            "--animate is for a small module"
        )
    scene = before_of(replay, options)
    if any(box.style == "part" for panel in scene.panels for box in panel.all_boxes()):
        raise HlofuseError(
            "the module does not fit into one picture, and --animate shows every operation: "
            "a greater --max-nodes"
        )
    scene.caption = list(caption)
    drawing = Drawing(to_dot(scene), scene, list(scene.notices))
    raw = drawing.raw_svg()
    keys = {box.name: box.key for panel in scene.panels for box in panel.all_boxes() if box.name}
    areas = _areas(raw)
    places = {name: areas[key] for name, key in keys.items() if key in areas}
    return _animation(
        drawing.to_svg(), raw, _Timing(len(steps)), list(_layers(steps, places)), _captions(steps, options)
    )


def _steps(replay: Replay) -> list[_Step]:
    inside: dict[str, tuple[str, ...]] = {}
    current: dict[str, _Step] = {}
    steps: list[_Step] = []
    for e in replay.events:
        if e.event == "rewrite":
            removed = [n for name in e.removed for n in inside.get(name, (name,))]
            for name in e.added:
                inside[name] = tuple(dict.fromkeys([*inside.get(name, (name,)), *removed]))
        if e.event != "fuse" or not e.fusion:
            continue
        producer, consumer = e.producer or "", e.consumer or ""
        first, second = inside.get(producer, (producer,)), inside.get(consumer, (consumer,))
        together = tuple(dict.fromkeys([*first, *second, *inside.get(e.fusion, ())]))
        # A producer that is copied stays a kernel of its own.
        stays = replay.after.find(producer) is not None
        for name in (consumer, e.fusion, "" if stays else producer):
            if name in current:
                current.pop(name).until = len(steps)
        inside[e.fusion] = together
        current[e.fusion] = _Step(e, first, second, together, -1)
        steps.append(current[e.fusion])
    for step in steps:
        step.until = len(steps) if step.until < 0 else step.until
    return steps


class _Timing:
    """When a step is on: percentages of the whole."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.units = steps + 4  # two for the start, one more for the end and one to begin anew
        self.seconds = self.units * SECONDS

    def at(self, step: int) -> float:
        return 100 * (step + 2) / self.units if step >= 0 else 0.0

    def rule(self, start: int, end: int) -> str:
        """The keyframes of what is seen from step `start` up to `end`; the last step stays to the end."""
        on = f"{self.at(start):.3f}%{{visibility:visible}}"
        off = f"{self.at(end):.3f}%{{visibility:hidden}}" if end < self.steps else ""
        first = "" if start < 0 else "0%{visibility:hidden}"
        last = "100%{visibility:hidden}" if off else "100%{visibility:visible}"
        return f"@keyframes s{start + 1}_{end + 1}{{{first}{on}{off}{last}}}"


@dataclass(frozen=True, slots=True)
class _Layer:
    """A rectangle for a while."""

    area: Area
    start: int
    end: int
    color: str
    bright: bool = False
    """It shows what is decided just now."""


def _layers(steps: Sequence[_Step], places: dict[str, Area]) -> Iterator[_Layer]:
    color: dict[str, str] = {}
    for n, step in enumerate(steps):
        own = color.get(step.event.consumer or "") or _COLORS[len(color) % len(_COLORS)]
        color[step.event.fusion or ""] = own
        members = [places[name] for name in step.together if name in places]
        for area in _hull(members, [a for name, a in places.items() if name not in step.together]):
            yield _Layer(area, n, step.until, own)
        for name in dict.fromkeys((*step.first, *step.second)):
            if name in places:
                yield _Layer(_grown(places[name], 3), n, n + 1, ALERT, bright=True)


def _hull(members: list[Area], others: list[Area]) -> list[Area]:
    """One area around all where nothing else lies in it, else one around each."""
    if not members:
        return []
    left, top = min(a[0] for a in members), min(a[1] for a in members)
    right, bottom = max(a[2] for a in members), max(a[3] for a in members)
    for a in others:
        if a[0] < right and a[2] > left and a[1] < bottom and a[3] > top:
            return [_grown(m, 6) for m in members]
    return [_grown((left, top, right, bottom), 7)]


def _grown(a: Area, by: float) -> Area:
    return a[0] - by, a[1] - by, a[2] + by, a[3] + by


def _areas(raw: bytes) -> dict[str, Area]:
    """Where Graphviz put each box, by its id."""
    found: dict[str, Area] = {}
    for group in ET.fromstring(raw).iter("{http://www.w3.org/2000/svg}g"):
        if group.get("class") != "node":
            continue
        xs: list[float] = []
        ys: list[float] = []
        for shape in group.iter():
            numbers = [float(x) for x in _NUMBER.findall(shape.get("points") or shape.get("d") or "")]
            xs += numbers[::2]
            ys += numbers[1::2]
            if shape.get("rx") and shape.get("cx"):
                cx, cy, rx, ry = (float(shape.get(k, "0")) for k in ("cx", "cy", "rx", "ry"))
                xs += [cx - rx, cx + rx]
                ys += [cy - ry, cy + ry]
        if xs and ys:
            found[group.get("id", "")] = (min(xs), min(ys), max(xs), max(ys))
    return found


def _captions(steps: Sequence[_Step], options: Options) -> list[str]:
    def shown(name: str | None) -> str:
        return shorten(options.final_names.get(name or "", name or ""), 40)

    lines = [f"before: {plural(len(steps), 'fusion')} to come"]
    for n, step in enumerate(steps, 1):
        e = step.event
        rule = f"   {e.rule}" if e.rule else ""
        pair = f"{shown(e.producer)} → {shown(e.consumer)}"
        lines.append(f"{n} of {len(steps)}   {pair}   {e.pass_name}{rule}")
    return lines


def _animation(
    picture: str, raw: bytes, timing: _Timing, layers: Sequence[_Layer], captions: Sequence[str]
) -> str:
    width, height = svg_size(raw)
    transform = next((g.get("transform", "") for g in ET.fromstring(raw) if g.tag.endswith("}g")), "")
    spans = {(layer.start, layer.end) for layer in layers} | {(n - 1, n) for n in range(len(captions))}
    rules = [timing.rule(*span) for span in sorted(spans)]
    for start, end in sorted(spans):
        base = "visible" if end >= timing.steps else "hidden"
        name = f"s{start + 1}_{end + 1}"
        rules.append(f".{name}{{visibility:{base};animation:{name} {timing.seconds:g}s step-end infinite}}")
    rules.append("@media (prefers-reduced-motion:reduce){[class^=s]{animation:none}}")
    under = "".join(_rect(layer) for layer in layers if not layer.bright)
    over = "".join(_rect(layer) for layer in layers if layer.bright)
    texts = "".join(
        f'<text class="s{n}_{n + 1}" x="24" y="{height + 16:g}" font-family="{FONT}" font-size="13"'
        f' fill="{INK if n else FAINT}">{escape(text)}</text>\n'
        for n, text in enumerate(captions)
    )
    line = f'<line x1="16" x2="{width - 16:g}" y1="{height - 4:g}" y2="{height - 4:g}" stroke="#d1d9e0"/>\n'
    taller = height + _STRIP
    head, card, body = _parts(picture)
    for old, new in (
        (f'height="{height:g}pt"', f'height="{taller:g}pt"'),
        (f'viewBox="0 0 {width:g} {height:g}"', f'viewBox="0 0 {width:g} {taller:g}"'),
        ("</style>", "\n".join(["", *rules, "</style>"])),
    ):
        head = head.replace(old, new, 1)
    card = card.replace(f'height="{height - 1:g}"', f'height="{taller - 1:g}"', 1)
    found = _FIRST.search(body)
    floor = found.start() if found is not None else 0  # above the panels, below boxes and arrows
    return "".join(
        [
            head,
            card,
            body[:floor],
            under,
            body[floor:].removesuffix("</svg>\n"),
            f'<g transform="{transform}" pointer-events="none">\n{over}</g>\n',
            line,
            texts,
            "</svg>\n",
        ]
    )


def _parts(picture: str) -> tuple[str, str, str]:
    """What comes before the white card, the card, and what lies on it."""
    start = picture.index("<rect ")
    end = picture.index("/>\n", start) + 3
    return picture[:start], picture[start:end], picture[end:]


def _rect(layer: _Layer) -> str:
    left, top, right, bottom = layer.area
    look = (
        f'fill="none" stroke="{layer.color}" stroke-width="3.5"'
        if layer.bright
        else f'fill="{layer.color}" fill-opacity="0.13" stroke="{layer.color}" stroke-width="1.5"'
    )
    return (
        f'<rect class="s{layer.start + 1}_{layer.end + 1}" x="{left:.2f}" y="{top:.2f}"'
        f' width="{right - left:.2f}" height="{bottom - top:.2f}" rx="8" {look}/>\n'
    )
