"""The picture one can read and press: sizes of text, selection, folds, colours, loops, search."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator

from hlofuse.account import observed_replay
from hlofuse.compilation import replay_config
from hlofuse.explorer import page_html, page_of
from hlofuse.inputs import read_text
from hlofuse.ir import Module, parse_module
from .browser import Visit
from .conftest import Open

VIEWS = ["steps", "fusion", "scope", "computation"]

# Sizes of all text on the page in CSS pixels on the screen, the smallest first, each with the text.
SIZES = """() => {
    const found = [];
    for (const text of document.querySelectorAll("#panes svg text")) {
        const style = getComputedStyle(text);
        if (style.display !== "none")
            found.push([parseFloat(style.fontSize) * text.getScreenCTM().a, text.textContent]);
    }
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const inside = walk.currentNode.parentElement;
        if (inside.closest("svg, script, option, noscript") || !walk.currentNode.data.trim()) continue;
        if (!inside.getClientRects().length) continue;
        found.push([parseFloat(getComputedStyle(inside).fontSize), walk.currentNode.data]);
    }
    return found.sort((a, b) => a[0] - b[0]);
}"""


@pytest.mark.parametrize("size", [(1280, 800), (1600, 1000), (2560, 1440)])
@pytest.mark.parametrize("sample", ["gpu/gpt2_block", "cartpole/gpu/no_concatenate"])
def test_no_text_is_too_small_to_be_read(visit: Open, sample: str, size: tuple[int, int]) -> None:
    seen = visit(sample)
    seen.page.set_viewport_size({"width": size[0], "height": size[1]})
    for view in VIEWS:
        for split in ("one", "ends"):
            seen.page.evaluate(f"explorer.change({{ view: '{view}', split: '{split}' }})")
            smallest, text = seen.page.evaluate(SIZES)[0]
            assert smallest >= 11, (view, split, text)


def test_a_wide_window_is_used(visit: Open) -> None:
    """All of the kernels, in larger text, over most of the width."""
    seen = visit("gpu/gpt2_block", "#view=fusion")
    seen.page.set_viewport_size({"width": 2560, "height": 1440})
    seen.page.reload()
    seen.page.wait_for_selector("html[data-ready]")
    room, drawn = (seen.page.locator(f"#panes svg{part}").bounding_box() for part in ("", " .overview"))
    assert room is not None
    assert drawn is not None
    assert drawn["width"] > 0.6 * room["width"]
    assert drawn["height"] <= room["height"]
    assert seen.page.evaluate(SIZES)[0][0] >= 11
    assert seen.page.evaluate("document.querySelector('#panes .name').getScreenCTM().a") > 1.2


def test_from_far_there_is_no_text_that_cannot_be_read(visit: Open) -> None:
    seen = visit("gpu/gpt2_block", "#view=scope")
    for _ in range(8):
        seen.page.keyboard.press("-")
    sizes = seen.page.evaluate(
        """() => [...document.querySelectorAll("#panes svg text")]
        .filter((t) => getComputedStyle(t).display !== "none")
        .map((t) => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)"""
    )
    assert all(size >= 11 for size in sizes)


def pressed(seen: Visit, which: Locator) -> None:
    which.dispatch_event("click")
    # A second click within this time would open it.
    seen.page.wait_for_timeout(420)


def heading(seen: Visit) -> str:
    return seen.page.inner_text("#details h2 >> nth=0")


@pytest.mark.parametrize("view", ["fusion", "scope", "computation"])
@pytest.mark.parametrize("split", ["one", "ends"])
def test_a_click_on_a_kernel_selects_and_explains_it(visit: Open, view: str, split: str) -> None:
    seen = visit("gpu/gpt2_block", f"#view={view}&split={split}")
    panes = seen.page.locator(".pane").count()
    for k in (0, 3, 7):
        box = seen.page.locator(f".pane >> nth={panes - 1}").locator(".group.kernel").nth(k)
        title = str(box.get_attribute("aria-label")).split(": ")[0]
        box.dispatch_event("click")
        assert heading(seen) == title
        chosen = seen.page.locator(f".pane >> nth={panes - 1}").locator(".chosen")
        assert [str(c.get_attribute("aria-label")).split(": ")[0] for c in chosen.all()] == [title]
        assert seen.page.get_attribute(f"#views [data-key={view}]", "aria-pressed") == "true"
        if split == "ends":  # before: all that ends in it
            assert (
                seen.page.locator(".pane >> nth=0").locator(".chosen, .related, .holds-chosen").count() >= 1
            )
        address = seen.page.evaluate("location.href")
        seen.page.goto("about:blank")
        seen.page.goto(address)
        seen.page.wait_for_selector("html[data-ready]")
        assert heading(seen) == title
        assert seen.page.locator(".chosen").count() >= 1


def test_a_real_click_selects_where_it_hits(visit: Open) -> None:
    seen = visit("gpu/gpt2_block", "#view=fusion")
    seen.page.click(".group.kernel[aria-label^='gemm_fusion_dot.5']")
    assert heading(seen) == "gemm_fusion_dot.5"
    seen.page.mouse.click(*_empty(seen))
    assert "Why 15 kernels?" in seen.details
    assert seen.page.locator(".chosen").count() == 0


def _empty(seen: Visit) -> tuple[float, float]:
    """A place of the picture where there is nothing."""
    room = seen.page.locator("#panes svg").bounding_box()
    assert room is not None
    return room["x"] + room["width"] - 4, room["y"] + room["height"] - 4


def test_moving_the_picture_selects_nothing(visit: Open) -> None:
    seen = visit("gpu/gpt2_block", "#view=fusion")
    box = seen.page.locator(".group.kernel").first.bounding_box()
    assert box is not None
    x, y = box["x"] + 40, box["y"] + 30
    before = seen.page.evaluate("document.querySelector('#panes svg').getAttribute('viewBox')")
    seen.page.mouse.move(x, y)
    seen.page.mouse.down()
    seen.page.mouse.move(x + 60, y + 40, steps=4)
    seen.page.mouse.up()
    assert seen.page.evaluate("document.querySelector('#panes svg').getAttribute('viewBox')") != before
    assert seen.page.locator(".chosen").count() == 0


def test_an_operation_that_is_clicked_is_explained_not_its_kernel(visit: Open) -> None:
    seen = visit("gpu/gpt2_block", "#view=steps")
    hull = seen.page.locator(".hull").last
    pressed(seen, hull)
    name = seen.page.evaluate("explorer.state.shownOf(explorer.chosen)")
    assert heading(seen) == name
    assert "chosen" in str(
        hull.page.locator(f".hull[data-box='{hull.get_attribute('data-box')}']").get_attribute("class")
    )
    node = seen.page.locator(".node[aria-label*=', in ']").last
    operation = str(node.get_attribute("aria-label")).split(",")[0]
    pressed(seen, node)
    assert heading(seen) == operation
    assert seen.page.locator(".node.chosen").count() == 1


def test_a_rule_on_an_edge_explains_that_decision_where_one_is(visit: Open) -> None:
    seen = visit("gpu/gpt2_block", "#view=fusion")
    at = seen.at
    mark = seen.page.locator(".rule-mark").first
    pressed(seen, mark)
    assert "refused" in seen.page.inner_text("#details .badge")
    assert str(seen.page.locator(".rule-mark text").first.text_content()) in seen.details
    assert seen.at == at
    assert seen.page.locator(".edge.chosen").count() == 1
    shown = seen.details
    address = seen.page.evaluate("location.href")
    seen.page.goto("about:blank")
    seen.page.goto(address)
    seen.page.wait_for_selector("html[data-ready]")
    assert seen.details == shown


def test_a_kernel_opens_in_place_by_mouse_and_by_keys(visit: Open) -> None:
    seen = visit("gpu/gpt2_block", "#view=fusion")
    page, name = seen.page, "loop_multiply_fusion"
    closed, opened = (page.locator(f"{kind}[aria-label^='{name}']") for kind in (".group", ".container"))
    siblings = page.locator(".group.kernel").count()
    closed.dblclick()
    assert opened.count() == 1
    assert page.locator(".group.kernel").count() == siblings - 1
    assert page.locator(".node").count() == page.evaluate("explorer.state.members[explorer.chosen].length")
    address = page.evaluate("location.href")
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    assert opened.count() == 1
    page.keyboard.press("o")
    assert opened.count() == 0
    page.wait_for_timeout(420)
    closed.locator(".toggle").dispatch_event("click")
    assert opened.count() == 1
    opened.focus()
    page.keyboard.press("Enter")  # it is selected
    assert opened.count() == 0
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith(name)
    page.keyboard.press("Escape")
    page.wait_for_timeout(420)
    closed.focus()
    page.keyboard.press("Enter")
    assert (heading(seen).split()[0], opened.count()) == (name, 0)
    page.keyboard.press("Enter")
    assert opened.count() == 1
    assert seen.problems == []


@pytest.fixture(scope="session")
def layered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Module, Path]:
    """GPT-2 blocks one after the other, 20,000 instructions, each in its own scope; and their page."""
    root = Path(__file__).parents[2]
    sample = root / "samples/gpu/gpt2_block/before.hlo"
    stacked = runpy.run_path(str(root / "benchmarks/stacked.py"))["stacked"]
    module = parse_module(stacked(read_text(sample), 20_000, layers=True))
    file = tmp_path_factory.mktemp("layers") / "page.html"
    page = page_of({"as XLA": observed_replay(module, replay_config("gpu", "h100_sxm"))})
    file.write_text(page_html(page), encoding="utf-8")
    return module, file


@pytest.fixture
def large(browser: Browser, layered: tuple[Module, Path]) -> Iterator[Visit]:
    seen = Visit(browser, layered[1])
    yield seen
    seen.close()


def test_a_large_module_opens_folded_by_scope_in_a_small_file(
    large: Visit, layered: tuple[Module, Path]
) -> None:
    module, file = layered
    assert sum(len(c) for c in module.computations) > 19_000
    assert file.stat().st_size < 5e6
    for view in ("fusion", "scope"):
        large.page.click(f"#views [data-key={view}]")
        folds = [str(t) for t in large.page.locator(".group.fold .name").all_text_contents()]
        assert 10 < len(folds) < 60
        assert folds[0] == "layer_0 … layer_4"
        assert large.page.evaluate(SIZES)[0][0] >= 11
    fold = large.page.locator(".group.fold").nth(1)
    pressed(large, fold)
    assert heading(large) == "layer_5 … layer_9"
    large.page.keyboard.press("o")
    inner = [str(t) for t in large.page.locator(".group.fold .name").all_text_contents()]
    assert {"layer_5", "layer_9", folds[0], folds[-1]} <= set(inner)
    assert len(inner) == len(folds) + 4
    large.page.keyboard.press("o")
    assert large.page.locator(".group.fold").count() == len(folds)


def test_what_is_looked_for_is_unfolded(large: Visit) -> None:
    large.page.click("#views [data-key=scope]")
    large.page.click("#tab-kernels")
    row = large.page.locator("#panel [role=option]").first
    name = row.locator(".first").inner_text().rpartition("× ")[2]
    row.click()
    assert large.page.locator(".group.chosen .name").inner_html() == name
    assert large.page.locator(".container .name, .titles .name").count() >= 1
    assert heading(large).startswith(name)


COLOURS = """() => {
    const paint = (e, name) => getComputedStyle(e)[name];
    const boxes = ".node rect, #panes svg .group .frame, #panes svg .hull .body:not(.band)";
    const drawn = [...document.querySelectorAll(`#panes svg ${boxes}`)].map((e) => paint(e, "fill"));
    const legend = [...document.querySelectorAll("#legend .sign")].map((e) => paint(e, "backgroundColor"));
    return [[...new Set(drawn)].sort(), [...new Set(legend)].sort(), legend.length];
}"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("colour", ["kind", "time", "bytes", "rule"])
def test_the_legend_has_the_colours_that_are_drawn(visit: Open, colour: str, dark: bool) -> None:
    seen = visit("gpu/gpt2_block", f"#view=fusion&colour={colour}", dark=dark)
    for view in ("fusion", "steps"):
        seen.page.click(f"#views [data-key={view}]")
        drawn, legend, count = seen.page.evaluate(COLOURS)
        assert drawn == legend
        assert count == len(legend) >= 2
    seen.page.select_option("#colour", "bytes")
    assert "colour=bytes" in seen.page.evaluate("location.hash")
    assert "B" in seen.page.inner_text("#legend")


CONTRAST = """() => {
    const light = (text) => {
        const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
        pen.fillStyle = text;
        pen.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...pen.getImageData(0, 0, 1, 1).data].map((x) => x / 255)
            .map((x) => (x < 0.04 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = [];
    for (const box of document.querySelectorAll("#panes svg .node, #panes svg .group"))
        for (const text of box.querySelectorAll("text")) {
            const frame = box.querySelector("rect:not(.under)");
            const [a, b] = [text, frame].map((e) => light(getComputedStyle(e).fill));
            found.push((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
        }
    return Math.min(...found);
}"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_in_every_colour(visit: Open, dark: bool) -> None:
    seen = visit("gpu/gpt2_block", "#view=fusion", dark=dark)
    for colour in ("kind", "time", "bytes", "rule"):
        for view in ("fusion", "steps"):
            seen.page.evaluate(f"explorer.change({{ view: '{view}', colour: '{colour}' }})")
            assert seen.page.evaluate(CONTRAST) >= 4.5, (colour, view)


def test_boxes_say_what_they_are(visit: Open) -> None:
    seen = visit("gpu/gpt2_block", "#view=fusion")
    kernel = seen.page.locator(".group.kernel[aria-label^='loop_multiply_fusion']")
    assert kernel.locator("text").all_text_contents() == [
        "loop_multiply_fusion", "f32[4,64,512] · line 305", "1.99 µs · 18 operations"
    ]  # fmt: skip
    seen.page.click("#views [data-key=steps]")
    reduce = seen.page.locator(".node[aria-label^='reduce.2,']").first
    assert reduce.locator("text").all_text_contents() == ["reduce.2", "f32[256,128] · line 304"]


def test_a_search_marks_all_it_finds(visit: Open) -> None:
    seen = visit("gpu/gpt2_block", "#view=steps")
    page = seen.page
    page.keyboard.press("/")
    page.keyboard.type("reduce")
    wanted = page.evaluate(
        """() => [...document.querySelectorAll("#panes .node")].filter((e) => {
        const op = +e.dataset.op, { run } = explorer;
        const texts = [run.names[op], run.ops.opcode[op], run.ops.opName[op], run.ops.source[op]];
        return texts.join(" ").includes("reduce");
    }).length"""
    )
    assert page.locator("#panes .node.hit").count() == wanted > 1
    assert page.inner_text("#hit-count").split()[1] == "hits"
    page.keyboard.press("Enter")
    first = heading(seen)
    assert page.inner_text("#hit-count").split()[1] == "of"
    page.click("#hit-next")
    assert heading(seen) != first
    page.click("#hit-back")
    assert heading(seen) == first
    page.click("#views [data-key=fusion]")
    assert page.locator("#panes .group.hit, #panes .node.hit").count() > 1
    assert "find=reduce" in page.evaluate("location.hash")
    page.keyboard.press("Escape")
    assert page.locator("#panes .hit").count() == 0
    assert page.is_hidden("#hits")


@pytest.mark.parametrize("view", ["fusion", "scope", "computation"])
def test_a_loop_is_drawn_around_its_kernels_with_its_trip_count(visit: Open, view: str) -> None:
    seen = visit("cartpole/gpu/scan", f"#view={view}")
    loop = seen.page.locator(".container.loop")
    assert loop.count() >= 1
    assert any("× 10,000" in str(t) for t in seen.page.locator(".titles .name").all_text_contents())
    frame = loop.first.locator(".frame").bounding_box()
    assert frame is not None
    inside = 0
    for kernel in seen.page.locator(".group.kernel").all():
        box, times = kernel.bounding_box(), "× 10,000" in str(kernel.get_attribute("aria-label"))
        assert box is not None
        within = (
            frame["x"] <= box["x"] <= frame["x"] + frame["width"]
            and frame["y"] <= box["y"] <= frame["y"] + frame["height"]
        )
        assert within or not times
        inside += within and times
    assert inside >= 3


FAULTS = """async (size) => {
    const rect = (e) => e.getBoundingClientRect(), found = {};
    const app = window.explorer, input = document.getElementById("search"), fits = (a, b) =>
        a.left >= b.left - 1 && a.right <= b.right + 1 && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
    app.clear();
    app.change({ view: "fusion", tab: "kernels" });
    app.panes[0].views.clear();
    app.draw();
    const [drawn, room] = [".overview", "svg"].map((what) => rect(document.querySelector(`#panes ${what}`)));
    found.whole = fits(drawn, room);
    input.focus();
    input.value = "programs.py:296";
    input.dispatchEvent(new Event("input"));
    const list = rect(document.getElementById("suggestions"));
    found.below = list.top >= rect(input).bottom && list.bottom <= innerHeight && list.right <= innerWidth;
    app.search.take(app.search.found.find((entry) => entry.line));
    found.line = document.querySelectorAll("#panes .marked").length;
    const row = document.querySelector("#panel .row .second");
    const range = document.createRange();
    range.setStart(row.firstChild, 0);
    range.setEnd(row.firstChild, row.textContent.indexOf(" · "));
    found.source = row.textContent.startsWith("programs.py:") && rect(range).right <= rect(row).right;
    const marks = [...document.querySelectorAll("#panes .rule-mark")].map(rect);
    found.overlaps = marks.some((a, n) => marks.slice(n + 1).some((b) =>
        a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom));
    const box = document.querySelector("#panes .group.kernel");
    box.dispatchEvent(new Event("pointerenter"));
    const shown = () => box.querySelector("title").textContent.includes(" = ");
    for (let k = 0; k < 50 && !shown(); k++) await new Promise((done) => setTimeout(done, 100));
    found.hlo = shown();
    return found;
}"""


def test_what_a_new_user_meets_first_at_any_size(visit: Open) -> None:
    """The whole picture, the search list below its input, a line's kernels, sources, rules, HLO."""
    seen = visit("gpu/gpt2_block")
    for width, height in ((1280, 800), (1440, 900), (1920, 1080)):
        seen.page.set_viewport_size({"width": width, "height": height})
        found = seen.page.evaluate(FAULTS, [width, height])
        assert found.pop("line") >= 1
        assert not found.pop("overlaps")
        assert all(found.values()), (width, found)
    assert seen.problems == []


def test_two_pictures_move_together(visit: Open) -> None:
    seen = visit("gpu/gpt2_block", "#view=fusion&split=ends")
    width = "explorer.panes.map((p) => p.views.get(p.key).w)"
    before = seen.page.evaluate(width)
    seen.page.mouse.move(500, 400)
    seen.page.mouse.wheel(0, -300)
    seen.page.wait_for_function(f"({width})[0] !== {before[0]}")
    after = seen.page.evaluate(width)
    assert after[0] / before[0] == pytest.approx(after[1] / before[1])
    assert after[0] < before[0]


TOO_WIDE = """[...document.querySelectorAll(".far-name")].filter((text) => {
    const wide = text.getBoundingClientRect().width, room = Number(text.dataset.room) + 9;
    return text.textContent && wide > room * text.getScreenCTM().a;
}).map((text) => text.textContent)"""


@pytest.mark.parametrize("width", [800, 1280, 1920])
def test_a_line_shows_its_slowest_kernel_to_be_read(visit: Open, width: int) -> None:
    seen = visit("gpu/gpt2_block", "#view=fusion")
    seen.page.set_viewport_size({"width": width, "height": 620})
    assert seen.page.evaluate(TOO_WIDE) == []
    seen.page.fill("#search", "programs.py:305")
    seen.page.keyboard.press("Enter")
    slowest = seen.page.locator(".marked", has_text="gemm_fusion_dot.2").first
    box, room = slowest.bounding_box(), seen.page.locator("#panes svg").first.bounding_box()
    assert box is not None
    assert room is not None
    assert room["x"] <= box["x"]
    assert box["x"] + box["width"] <= room["x"] + room["width"]
    assert room["y"] <= box["y"]
    assert box["y"] + box["height"] <= room["y"] + room["height"]
    assert box["height"] >= 30


def test_a_kernel_of_a_cpu_has_its_own_kind_of_code(visit: Open) -> None:
    seen = visit("cpu/softmax")
    rows = seen.page.locator("#panel .row .second").all_text_contents()
    assert rows
    assert all("YNNPACK" in row or "emitter" in row for row in rows)
