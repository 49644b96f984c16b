"""A directory of pictures: everything is in one of them, and every link leads to one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlofuse.ir import HlofuseError, parse_module
from hlofuse.render import Drawing, Options
from hlofuse.render.atlas import INDEX, atlas

from ..running import Run
from .modules import FUSED, LOOP, chain, needs_graphviz, titles


def instructions(page: Drawing) -> set[str]:
    boxes = [b for p in page.scene.panels for b in p.all_boxes() if b.style not in ("part", "stub", "value")]
    return {b.tooltip[0].split(" = ")[0].removeprefix("ROOT ") for b in boxes}


@pytest.mark.parametrize("limit", [12, 40, 250])
def test_every_instruction_is_in_a_picture_and_every_link_leads_to_one(limit: int) -> None:
    module = parse_module(chain(600))
    pages = atlas(module, None, Options(max_nodes=limit))
    assert next(iter(pages)) == INDEX
    drawn = set().union(*(instructions(page) for page in pages.values()))
    expected = {i.name for i in module.entry if i.opcode not in ("parameter", "constant")}
    assert {name.lstrip("%") for name in drawn} == expected
    reached = {link for page in pages.values() for link in page.links.values()}
    assert reached == pages.keys() - {INDEX} | (reached & {INDEX})
    assert all(page.back in pages for name, page in pages.items() if name != INDEX)
    assert pages[INDEX].back == ""
    assert all(page.scene.box_count() <= 3 * limit + 40 for page in pages.values())


def test_a_part_says_what_comes_from_which_part() -> None:
    pages = atlas(parse_module(chain(600)), None, Options(max_nodes=40))
    found = titles(pages["part2.svg"])
    assert "from part 1" in found
    assert "to part 3" in found
    advice = [n for page in pages.values() for n in page.notices if "--open" in n]
    assert not advice


def test_a_computation_that_has_no_room_has_a_picture() -> None:
    pages = atlas(parse_module(LOOP), None, Options(max_nodes=3))
    assert "body.svg" in pages
    assert "body.svg" in pages[INDEX].links.values()


@pytest.mark.parametrize("limit", [4, 6])
def test_a_fusion_that_is_drawn_closed_has_a_picture(limit: int) -> None:
    pages = atlas(parse_module(FUSED), None, Options(max_nodes=limit))
    closed = {b.opens for p in pages[INDEX].scene.panels for b in p.all_boxes() if b.opens}
    assert closed == {"norm", "scale"}
    assert set(pages[INDEX].links.values()) == {"norm.svg", "scale.svg"}
    assert {"square", "total"} <= {name.lstrip("%") for name in instructions(pages["norm.svg"])}
    assert "scaled" in {name.lstrip("%") for page in pages.values() for name in instructions(page)}
    assert not [n for page in pages.values() for n in page.notices if "--open" in n]


def test_where_the_way_back_leads() -> None:
    """To the overview, whatever else is called as the first half of a name: `norm.1` is no part of `norm`."""
    pages = atlas(parse_module(FUSED.replace("scale", "norm.1")), None, Options(max_nodes=4))
    assert pages["norm.1.svg"].back == INDEX


def test_a_small_module_is_one_picture() -> None:
    assert list(atlas(parse_module(LOOP), None, Options())) == [INDEX]


def test_a_file_name_is_harmless() -> None:
    """Whatever a computation is called, its file is in the directory."""
    module = parse_module(LOOP)
    body = module.find_computation("body")
    assert body is not None
    body.name = "../../etc/<x>"
    names = list(atlas(module, None, Options(max_nodes=3)))
    assert len(names) > 1
    for name in names:
        assert re.fullmatch(r"[A-Za-z0-9_.-]+\.svg", name)
        assert not name.startswith(".")


@pytest.mark.parametrize(("view", "options"), [("both", Options()), (None, Options(focus="x"))])
def test_what_a_directory_cannot_hold(view: str | None, options: Options) -> None:
    with pytest.raises(HlofuseError):
        atlas(parse_module(LOOP), view, options)


@needs_graphviz
def test_the_command_writes_the_directory(hlofuse: Run, tmp_path: Path) -> None:
    source, folder = tmp_path / "long.hlo", tmp_path / "pictures"
    source.write_text(chain(100), encoding="utf-8")
    result = hlofuse("render", source, "-o", f"{folder}/", "--view", "before", "--max-nodes", "12")
    assert (result.status, "note" in result.err) == (0, False)
    files = {f.name for f in folder.iterdir()}
    assert INDEX in files
    for file in folder.iterdir():
        text = file.read_text(encoding="utf-8")
        links = re.findall(r'href="([^"]*)"', text)
        assert set(links) <= files
        assert ("back to the overview" in text) == (file.name != INDEX)
    assert hlofuse("render", source, "-o", folder, "--format", "png").status == 2
