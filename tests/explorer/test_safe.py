"""A page made from a hostile dump shows it and does nothing else."""

from __future__ import annotations

from hlofuse.account import observed_replay
from hlofuse.compilation import replay_config
from hlofuse.explorer import page_html, page_of
from hlofuse.ir import Module
from ..hostile import COLOUR, EVIL, hostile_module
from .conftest import Open


def evil_module() -> Module:
    quoted = EVIL.replace('"', '\\"')
    return hostile_module(EVIL + COLOUR, op_name=f"s/{quoted}/o", source_file=f"{quoted}.py")


def test_names_are_text_and_nothing_else(visit: Open) -> None:
    seen = visit(evil_module(), "#view=steps&tab=decisions")
    page = seen.page
    for view in ("fusion", "scope", "computation", "steps"):
        page.click(f"#views [data-key={view}]")
    for tab in ("refused", "kernels", "source", "decisions"):
        page.click(f"#tab-{tab}")
    for step in range(seen.at + 1):
        page.evaluate(f"explorer.goTo({step})")
    page.locator("#panes .node").first.click(force=True)
    page.fill("#search", "</script>")
    assert page.locator("#suggestions [role=option]").count() > 0
    page.keyboard.press("Enter")
    assert page.evaluate("window.pwned") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 3
    assert EVIL in seen.details
    assert "\x1b" not in page.content()
    assert "\u202e" not in page.content()
    assert page.title().startswith(f"m{EVIL}")
    assert seen.problems == []
    assert seen.requests == [seen.url]


def test_the_file_holds_no_name_in_the_clear() -> None:
    html = page_html(page_of({"": observed_replay(evil_module(), replay_config("cpu", None))}))
    assert "pwned" not in html
    assert html.count("</script>") == 3


def test_the_policy_lets_nothing_else_run_or_load(visit: Open) -> None:
    seen = visit("cpu/softmax")
    blocked = seen.page.evaluate(
        """async () => {
        const blocked = [];
        document.addEventListener("securitypolicyviolation", (e) => blocked.push(e.effectiveDirective));
        const script = document.createElement("script");
        script.textContent = "window.pwned = 1";
        const image = document.createElement("img");
        image.src = "http://127.0.0.1:9/x.png";
        const style = document.createElement("style");
        style.textContent = "body { display: none }";
        const button = document.createElement("button");
        button.setAttribute("onclick", "window.pwned = 2");
        document.body.append(script, image, style, button);
        button.click();
        await fetch("http://127.0.0.1:9/").catch(() => 0);
        await new Promise((done) => setTimeout(done, 200));
        return blocked;
    }"""
    )
    assert {"script-src-elem", "img-src", "style-src-elem", "script-src-attr", "connect-src"} <= set(blocked)
    assert seen.page.evaluate("window.pwned") is None
    assert seen.page.is_visible("#title")
