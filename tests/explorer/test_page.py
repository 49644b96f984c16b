"""The page in a real browser: it opens, steps, finds things, follows links, obeys the keyboard."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from hlofuse.analysis.kernels import kernels
from hlofuse.compilation import compile
from hlofuse.inputs import load
from hlofuse.ir import parse_module
from ..running import Run
from .browser import Visit
from .conftest import Open, target_of

SAMPLES = ["cpu/softmax", "cartpole/cpu/precomputed_noise", "gpu/softmax", "gpu/gpt2_block"]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("sample", SAMPLES)
def test_opens_without_a_complaint_and_asks_for_nothing(visit: Open, sample: str, dark: bool) -> None:
    seen = visit(sample, dark=dark)
    for view in ("steps", "fusion", "scope", "computation"):
        seen.page.click(f"#views [data-key={view}]")
        assert seen.page.locator("#panes svg .node, #panes svg .group").count() >= 1
    for tab in ("kernels", "source", "refused", "decisions"):
        seen.page.click(f"#tab-{tab}")
        assert seen.page.get_attribute(f"#tab-{tab}", "aria-selected") == "true"
    seen.page.click("#splits [data-key=ends]")
    assert seen.page.locator(".pane svg").count() == 2
    assert seen.problems == []
    assert seen.requests == [seen.url]


@pytest.mark.parametrize("sample", SAMPLES)
def test_shows_the_module_as_it_was_and_as_it_ends(visit: Open, samples: Path, sample: str) -> None:
    module = load(str(samples / sample / "before.hlo"))
    target = target_of(sample)
    run = compile(module, target, device="h100_sxm" if target == "gpu" else None)
    seen = visit(sample)
    assert seen.at == len(run.events)
    assert seen.kernels() == {i.name for i in kernels(run.after)}
    seen.page.click("#first")
    assert seen.at == 0
    assert seen.kernels() == {i.name for i in kernels(module)}
    seen.page.click("#last")
    assert seen.kernels() == {i.name for i in kernels(run.after)}


@pytest.mark.parametrize("sample", ["cartpole/cpu/precomputed_noise", "cartpole/gpu/no_concatenate"])
def test_every_step_back_undoes_the_step(visit: Open, sample: str) -> None:
    seen = visit(sample)
    assert (
        seen.page.evaluate(
            """() => {
        const s = explorer.state, n = explorer.run.length;
        const all = () => JSON.stringify([s.members, s.alive, s.name, s.home, s.fused, s.given, s.reads,
            s.holders.map((h) => [...h].sort())]);
        s.goTo(0);
        const before = [];
        for (let k = 0; k < n; k++) { before.push(all()); s.goTo(k + 1); }
        for (let k = n - 1; k >= 0; k--) { s.goTo(k); if (all() !== before[k]) return `step ${k}`; }
        return "same";
    }"""
        )
        == "same"
    )


WRAPPED = """HloModule m

ENTRY main {
  p = f32[1,8]{1,0} parameter(0)
  t = f32[8,1]{0,1} transpose(p), dimensions={1,0}
  e = f32[8,1]{0,1} exponential(t)
  ROOT r = (f32[8,1]{0,1}, f32[8,1]{0,1}) tuple(t, e)
}
"""


@pytest.mark.parametrize("what", ["cartpole/cpu/precomputed_noise", "cartpole/gpu/no_concatenate", WRAPPED])
def test_kernel_count_is_told_at_every_step(visit: Open, what: str) -> None:
    """Also where what was no kernel becomes one by being wrapped."""
    seen = visit(parse_module(what) if what == WRAPPED else what)
    reported = seen.page.evaluate(
        """() => { const a = explorer, wrong = [];
        for (let n = 0; n < a.run.length; n++) {
            a.state.goTo(n + 1);
            let k = 0;
            for (let b = 0; b < a.run.boxes; b++) if (a.state.isKernel(b)) k++;
            if (k !== a.run.decisions.kernels[n]) wrong.push(n);
        }
        return wrong; }"""
    )
    assert reported == []


def test_buttons_and_keys_step(visit: Open) -> None:
    seen = visit("cpu/softmax")
    page, length = seen.page, seen.at
    page.keyboard.press("Home")
    assert seen.at == 0
    assert page.is_disabled("#back")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert seen.at == 2
    assert "divide not fused into broadcast_multiply_fusion" in page.inner_text("#now")
    page.keyboard.press("ArrowLeft")
    page.click("#next")
    page.click("#back")
    assert seen.at == 1
    assert "broadcast.1 fused into multiply" in seen.details
    page.keyboard.press("End")
    assert seen.at == length
    assert page.is_disabled("#next")
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    page.keyboard.press("Escape")
    assert page.is_hidden("#keys")
    page.focus("#slider")
    page.keyboard.press("Home")
    assert seen.at == 0
    assert page.get_attribute("#slider", "aria-valuetext") == "0: the module as given"


def test_a_picture_is_walked_by_keys(visit: Open) -> None:
    seen = visit("gpu/gpt2_block", "#step=40")
    page = seen.page
    where = """() => {
        const box = document.activeElement, at = box.getBoundingClientRect();
        const room = document.querySelector("#panes svg").getBoundingClientRect();
        return [box.getAttribute("role"), at.top >= room.top && at.bottom <= room.bottom];
    }"""
    page.focus("#fit")
    for _ in range(30):  # more boxes than the room shows at once
        page.keyboard.press("Tab")
        assert page.evaluate(where) == ["button", True]
    label = page.evaluate("document.activeElement.getAttribute('aria-label')").split(",")[0]
    page.keyboard.press("Space")  # presses it, and does not play
    assert (seen.at, page.inner_text("#play")) == (40, "Play")
    assert label in seen.details
    wide = "() => document.querySelector('#panes svg').viewBox.baseVal.width"
    before = page.evaluate(wide)
    page.keyboard.press("+")
    assert page.evaluate(wide) < before
    page.keyboard.press("-")
    assert page.evaluate(wide) == pytest.approx(before)


def test_the_list_of_refused_pairs_is_stepped_by_keys(visit: Open) -> None:
    seen = visit("cpu/softmax", "#tab=refused")
    seen.page.focus(".long-list")
    for n in range(2):
        seen.page.keyboard.press("ArrowDown")
        assert seen.page.get_attribute("[role=option][aria-selected=true]", "aria-posinset") == str(n + 1)


def test_plays_to_the_end(visit: Open) -> None:
    seen = visit("cpu/softmax", "#step=7")
    seen.page.keyboard.press("Space")
    assert seen.page.inner_text("#play") == "Pause"
    seen.page.wait_for_selector("#last:disabled")
    seen.page.wait_for_selector("#play:text('Play')")
    assert seen.at == 9


def test_follows_a_link_to_a_step(visit: Open) -> None:
    seen = visit("cpu/softmax", "#step=2&tab=decisions")
    assert seen.at == 2
    assert seen.page.inner_text("[role=option][aria-selected=true] .first").startswith("divide not fused")
    assert seen.page.locator("#panes .pair.ineligible .link").count() > 0
    assert seen.page.locator("#panes .pair .rule-mark text").inner_html() == "CPU007"
    assert "The consumer would recompute an expensive producer" in seen.details
    seen.page.evaluate("location.hash = '#step=5'")
    seen.page.wait_for_selector("#count:has-text('5 / 9')")
    seen.page.keyboard.press("ArrowRight")
    assert "step=6" in seen.page.evaluate("location.hash")
    seen.page.reload()
    seen.page.wait_for_selector("html[data-ready]")
    assert seen.at == 6


@pytest.mark.parametrize(
    "address", ["#step=999999", "#step=-3", "#step=x", "#run=7&tab=a&view=b&split=c", "#%%%"]
)
def test_a_wrong_link_opens_all_the_same(visit: Open, address: str) -> None:
    seen = visit("cpu/softmax", address)
    assert 0 <= seen.at <= 10
    assert seen.problems == []


def test_a_fusion_grows(visit: Open) -> None:
    seen = visit("cpu/softmax", "#step=1")
    fused = seen.page.locator("#panes .hull").count()
    assert fused == 1
    size = "[...document.querySelectorAll('.hull .body')].reduce((n, p) => n + p.getAttribute('d').length, 0)"
    before = seen.page.evaluate(size)
    seen.page.keyboard.press("End")
    assert seen.page.evaluate(size) > before


def test_search_suggests_and_shows(visit: Open) -> None:
    seen = visit("gpu/gpt2_block")
    page = seen.page
    page.keyboard.press("/")
    page.keyboard.type("exp.1")
    assert page.locator("#suggestions [role=option]").count() >= 1
    page.keyboard.press("Enter")
    assert seen.page.inner_text("#details h2") == "exp.1.0"
    assert "History" in seen.details
    assert page.locator("#panes .node.chosen").count() == 1
    page.keyboard.press("/")
    page.keyboard.type("PF002")
    page.keyboard.press("Enter")
    assert page.input_value("#filter-rule") == "PF002"
    page.keyboard.press("/")
    page.keyboard.type("no such thing")
    assert "No match" in page.inner_text("#suggestions")
    page.keyboard.press("Escape")
    assert page.is_hidden("#suggestions")


def test_filters_list_and_step_through_what_is_listed(visit: Open) -> None:
    seen = visit("gpu/gpt2_block", "#tab=decisions&step=0")
    page = seen.page
    page.select_option("#filter-kind", "fuse")
    text = page.inner_text(".filters .note")
    count, every = (int(n.replace(",", "")) for n in re.findall(r"[\d,]+", text)[:2])
    assert 0 < count < every
    page.keyboard.press("Escape")
    page.click("#listed-next")
    assert page.evaluate("explorer.run.decisions.kind[explorer.state.at - 1]") == "fuse"
    page.fill("#filter-text", "softmax")
    page.press("#filter-text", "Enter")
    for row in page.locator("#panel .row .first").all_text_contents():
        assert "softmax" in row
    assert "q=softmax" in page.evaluate("location.hash")
    page.click("#clear")
    assert every == page.evaluate("explorer.panels.listed.length")


def test_a_refused_pair_leads_to_its_decision(visit: Open) -> None:
    seen = visit("cpu/softmax", "#tab=held")  # as links of earlier pages name the tab
    seen.page.click("#panel .row >> nth=0")
    assert "refused" in seen.page.inner_text("#details .badge")
    assert "What to do" in seen.page.inner_html("#details")


def test_an_operation_tells_its_history(visit: Open) -> None:
    seen = visit("cpu/softmax", "#view=steps")
    node = seen.page.locator("#panes .node[aria-label^='divide']").first
    node.focus()
    seen.page.keyboard.press("Enter")
    assert "programs.py:89" in seen.details
    seen.page.click("#details .history button >> nth=0")
    assert seen.page.evaluate("location.hash").startswith("#step=")
    assert "divide" in seen.details


def test_everything_has_a_name_for_a_screen_reader(visit: Open) -> None:
    seen = visit("gpu/gpt2_block", "#view=steps&tab=decisions")
    nameless = seen.page.evaluate(
        """() => ["button, input, select, [role=button], [role=listbox], section"]
        .flatMap((which) => [...document.querySelectorAll(which)])
        .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim())).map((e) => e.outerHTML)"""
    )
    assert nameless == []
    assert seen.page.get_attribute("#now", "aria-live") == "polite"


def test_memory_is_drawn_over_the_schedule(visit: Open) -> None:
    seen = visit("gpu/gpt2_block")
    seen.page.evaluate("document.querySelector('.memory-plot img').decode()")
    assert seen.page.evaluate("document.querySelector('.memory-plot img').naturalWidth") > 100


def test_light_and_dark(visit: Open) -> None:
    seen = visit("cpu/softmax")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = seen.page.evaluate(colour)
    seen.page.click("#theme")
    dark = seen.page.evaluate(colour)
    assert light != dark
    seen.page.click("#theme")
    assert seen.page.evaluate(colour) == light


def test_two_settings_side_by_side(browser: Browser, hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    result = hlofuse("explore", samples / "cpu/softmax/before.hlo", "--disable", "CPU007", "-o", out)
    assert result.status == 0, result.err
    seen = Visit(browser, out)
    assert seen.page.locator("#run-picker button").all_text_contents() == ["as XLA", "what if"]
    seen.page.click("#splits [data-key=runs]")
    labels = seen.page.locator(".pane-label").all_text_contents()
    assert [label.partition(":")[0] for label in labels] == ["as XLA", "what if"]
    assert labels[0].partition(":")[2] != labels[1].partition(":")[2]
    seen.page.click("#run-picker [data-key='1']")
    assert "CPU007" in seen.page.inner_text("#title")
    assert seen.problems == []
    seen.close()


def test_two_devices_side_by_side(browser: Browser, hlofuse: Run, samples: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    source = samples / "gpu/gpt2_block/before.hlo"
    result = hlofuse("explore", source, "--device", "h100_sxm", "--compare-device", "v100", "-o", out)
    assert result.status == 0, result.err
    seen = Visit(browser, out, "#split=runs&view=steps")
    assert seen.page.locator(".pane svg").count() == 2
    assert [t.partition(":")[0] for t in seen.page.locator(".pane-label").all_text_contents()] == [
        "h100_sxm",
        "v100",
    ]
    assert seen.problems == []
    seen.close()


def test_follows_the_record_of_xla(hlofuse: Run, samples: Path, browser: Browser, tmp_path: Path) -> None:
    folder, out = samples / "gpu/softmax", tmp_path / "page.html"
    result = hlofuse(
        "explore",
        folder / "before.hlo",
        "--device",
        "h100_sxm",
        "--xla-trace",
        folder / "priority_fusion.txtpb",
        "-o",
        out,
    )
    assert result.status == 0, result.err
    seen = Visit(browser, out)
    assert "Matches XLA's fusion log (priority_fusion.txtpb)" in seen.details
    seen.close()


def test_nothing_is_written_for_wrong_input(hlofuse: Run, tmp_path: Path, samples: Path) -> None:
    out = tmp_path / "page.html"
    (tmp_path / "bad.hlo").write_text("HloModule m\n\nENTRY %e { nonsense }\n")
    for text in (
        [tmp_path / "bad.hlo"],
        [tmp_path / "none.hlo"],
        [samples / "cpu/softmax/before.hlo", "--compare-device", "v100"],
    ):
        result = hlofuse("explore", *text, "-o", out)
        assert result.status == 2
        assert "Traceback" not in result.err
        assert not out.exists()


def test_an_edge_tells_what_was_decided_about_it(visit: Open) -> None:
    seen = visit("cpu/softmax", "#view=steps")
    seen.page.locator("#panes .edges g:has(.refused) .reach").first.dispatch_event("click")
    assert "→" in seen.page.inner_text("#details h2")
    assert "refused (" in seen.details
    assert seen.page.locator("#details .history button").count() >= 1
    # The same by the keyboard: from what an operation reads.
    seen.page.locator("#panes .node[aria-label^='divide']").first.press("Enter")
    seen.page.locator("#details button.small").first.press("Enter")
    assert seen.page.locator("#details .edge-details").count() == 1


def test_a_rule_lists_the_pairs_it_holds_back(visit: Open) -> None:
    seen = visit("gpu/gpt2_block")
    seen.page.click("#details .why button >> nth=0")
    assert "PF002" in seen.page.inner_text("#panel .note")
    assert "rule=PF002" in seen.page.evaluate("location.hash")


def test_a_link_shows_a_fusion_by_name(visit: Open) -> None:
    seen = visit("cpu/softmax", "#view=steps&show=broadcast_multiply_fusion")
    assert seen.page.inner_text("#details h2") == "broadcast_multiply_fusion"
    assert "Contains" in seen.details
    seen.page.keyboard.press("Escape")
    assert "Why 4 kernels?" in seen.details


@pytest.mark.parametrize("view", ["steps", "fusion", "scope", "computation"])
def test_a_narrow_window_shows_all_of_it_one_below_the_other(visit: Open, view: str) -> None:
    seen = visit("gpu/gpt2_block", f"#view={view}&step=40")
    seen.page.set_viewport_size({"width": 360, "height": 740})
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 360
    parts = map(seen.page.locator, ("#stage", "#curve", "#details", "#side", ".legend-bar"))
    *boxes, legend = [box for part in parts if (box := part.bounding_box()) is not None]
    assert all(above["y"] + above["height"] <= below["y"] for above, below in itertools.pairwise(boxes))
    assert legend["y"] + legend["height"] <= boxes[0]["y"] + boxes[0]["height"]
    assert len(boxes) == 4


@pytest.mark.parametrize("width", [1280, 480])
def test_no_figure_is_broken_and_the_part_that_is_drawn_is_named(visit: Open, width: int) -> None:
    seen = visit("gpu/gpt2_block", "#view=steps&step=137")
    seen.page.set_viewport_size({"width": width, "height": 780})
    figures = seen.page.locator("#totals span")
    assert figures.all_text_contents()[0] == "43 kernels → 15"
    heights = [box["height"] for f in figures.all() if (box := f.bounding_box()) is not None]
    assert len(heights) == 4
    assert max(heights) < 30
    part = seen.page.locator("#where")
    assert part.inner_text().startswith("part ")
    box = part.bounding_box()
    assert box is not None
    assert box["width"] > 100


@pytest.mark.parametrize("width", [1400, 1000])
def test_the_buttons_above_the_picture_stay_together(visit: Open, width: int) -> None:
    seen = visit("gpu/gpt2_block", "#view=steps&step=137")
    seen.page.set_viewport_size({"width": width, "height": 780})
    tops = {}
    for name in ("views", "splits", "where", "region-back", "region-next", "fit"):
        box = seen.page.locator(f"#{name}").bounding_box()
        assert box is not None
        tops[name] = box["y"] + box["height"] / 2
    assert tops["views"] == tops["splits"]
    assert tops["region-back"] == tops["region-next"] == tops["fit"]
    assert (tops["fit"] == tops["views"]) == (width == 1400)


def test_on_paper_there_is_what_was_asked_and_no_button(visit: Open) -> None:
    seen = visit("cpu/softmax", "#step=2")
    seen.page.emulate_media(media="print")
    assert seen.page.is_visible("#details")
    assert seen.page.locator("#panes svg").is_visible()
    assert seen.page.is_hidden("footer")
    assert seen.page.is_hidden("#search")


def test_a_source_line_leads_to_its_decisions(visit: Open) -> None:
    seen = visit("gpu/gpt2_block", "#step=137")
    seen.page.click("#details dd button[title^='All decisions']")
    assert seen.page.input_value("#filter-source").startswith("programs.py:")
    assert 0 < len(seen.page.evaluate("explorer.panels.listed")) < seen.page.evaluate("explorer.run.length")


def test_the_edge_in_question_does_not_cross_out_a_kernels_name(visit: Open) -> None:
    seen = visit("gpu/gpt2_block", "#view=steps")
    drawn = """() => {
        const link = document.querySelector("#panes .pair .link"), behind = Node.DOCUMENT_POSITION_FOLLOWING;
        const names = [...document.querySelectorAll("#panes .fusion-name")];
        return link && names.map((name) => (link.compareDocumentPosition(name) & behind) !== 0);
    }"""
    while not (names := seen.page.evaluate(drawn)):
        assert seen.at > 0, "no decision shows an edge and a kernel's name"
        seen.page.click("#back")
    assert all(names)


def test_no_array_is_spread_where_it_may_be_long() -> None:
    """A hundred thousand decisions as arguments overflow the call stack: the page would stay empty."""
    folder = files("hlofuse.explorer") / "page"
    scripts = {f.name: f.read_text(encoding="utf-8") for f in folder.iterdir() if f.name.endswith(".js")}
    spread = re.compile(r"(Math\.(max|min)\([^;]*?\.\.\.|\.push\(\.\.\.)")
    assert {name: found[0] for name, text in scripts.items() if (found := spread.search(text))} == {}


CALL = """HloModule m

ENTRY main {
  p = f32[8]{0} parameter(0)
  c = f32[8]{0} custom-call(p), custom_call_target="library"
  ROOT n = f32[8]{0} negate(c)
}
"""


def test_figures_that_xla_does_not_know_are_not_noughts(visit: Open) -> None:
    seen = visit(parse_module(CALL), "#view=fusion")
    text = str(seen.page.text_content("#panes svg"))
    assert " µs · kLoop" in text
    assert "0 B" not in text


def test_the_welcome_leads_to_the_first_decision(visit: Open) -> None:
    """The page opens at the end, where the arrow leads nowhere."""
    seen = visit("gpu/softmax")
    assert seen.at > 1
    seen.page.click("#details >> text=Go to the first decision")
    assert seen.at == 1


@pytest.fixture
def with_final_names(browser: Browser, hlofuse: Run, gpt2_whole: Path, tmp_path: Path) -> Iterator[Visit]:
    file = tmp_path / "page.html"
    assert hlofuse("explore", gpt2_whole, "-o", file, "--device", "h100_sxm", "--no-timeline").status == 0
    seen = Visit(browser, file)
    yield seen
    seen.close()


def test_final_names_come_first(with_final_names: Visit) -> None:
    """On boxes, in decisions and lists; the name at fusion next to it."""
    seen = with_final_names
    both, final = "loop_multiply_fusion (fusion.21)", "loop_multiply_fusion"
    seen.page.click("#views [data-key=fusion]")
    box = seen.page.locator("#panes .group.kernel", has=seen.page.locator(f".name:text-is('{final}')"))
    assert box.locator("title").first.text_content().split("\n")[0] == both  # type: ignore[union-attr]
    seen.page.click("#tab-refused")
    assert f"gemm_fusion_dot.2 → {final}" in seen.page.locator("#panel .first").all_text_contents()
    seen.page.click("#tab-kernels")
    row = seen.page.locator("#panel [role=option]", has_text=final)
    assert "fusion.21" in row.locator(".second").inner_text()
    row.click()
    assert seen.details.startswith(both)
    assert seen.page.locator("#panes .group.chosen .name").all_text_contents() == [final]
    seen.page.click("#views [data-key=steps]")
    assert both in seen.page.locator("#panes .fusion-name").all_text_contents()
    seen.page.evaluate("explorer.goTo(100)")
    assert f"fusion.34 fused into {both}" in seen.details
    assert seen.problems == []


@pytest.mark.parametrize("name", ["loop_multiply_fusion", "fusion.21"])
def test_search_and_links_take_either_name(with_final_names: Visit, name: str) -> None:
    seen = with_final_names
    seen.page.fill("#search", name)
    assert seen.page.inner_text("#suggestion-0 span") == "loop_multiply_fusion (fusion.21)"
    seen.page.goto(f"{seen.url}#show={name}")
    seen.page.reload()
    seen.page.wait_for_selector("html[data-ready]")
    assert seen.details.startswith("loop_multiply_fusion (fusion.21)")


def test_a_lower_bound_is_marked(explored: Open, samples: Path) -> None:
    seen = explored(samples / "gpu/gpt2_block", "--device", "a100_sxm_40", address="#tab=kernels")
    row = seen.page.locator("#panel [role=option]", has_text="gemm_fusion_dot.2")
    assert row.locator(".worth").inner_text() == "≥ 1.59 µs"


WIDEST = """() => {
    const page = document.documentElement, details = document.getElementById("details"), widest = [0, 0];
    const look = () => [page, details].forEach((e, n) => {
        widest[n] = Math.max(widest[n], e.scrollWidth - e.clientWidth);
    });
    const texts = document.createTreeWalker(details, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const text = texts.currentNode, before = text.data, { parentElement } = text;
        if (!before.trim() || parentElement.closest("svg, .slowest td:first-child")) continue;
        text.data = "word".repeat(40);
        look();
        text.data = before;
    }
    return widest;
}"""


@pytest.mark.parametrize("width", [360, 900, 1600])
def test_no_word_makes_the_page_wider_than_the_window(explored: Open, samples: Path, width: int) -> None:
    seen = explored(samples / "gpu" / "gpt2_block")
    seen.page.set_viewport_size({"width": width, "height": 740})
    for change in ("clear()", "showKernel(explorer.run.kernels[0])", "goTo(40)", "chooseLine('0:298')"):
        seen.page.evaluate(f"explorer.{change}")
        assert seen.page.evaluate(WIDEST) == [0, 0], change


def test_a_fused_module_has_its_kernels_and_no_decisions(explored: Open, samples: Path) -> None:
    seen = explored(samples / "gpu/gpt2_block/after.hlo", "--device", "h100_sxm", address="#tab=kernels")
    assert seen.page.inner_text("#totals").startswith("15 kernels\n")
    assert seen.page.locator("#tabs button").all_text_contents() == ["Kernels", "Source"]
    assert not seen.page.is_visible("footer")
    seen.page.locator("#panel [role=option]").first.click()
    assert "Why not fused" not in seen.details
