"""What the documents point at is there."""

import re
from pathlib import Path

import pytest
from PIL import Image

from tools.screenshots import HEIGHT, MOST, PICTURES, WIDTH, apart
from vizformer.web.frame import sitemap

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/*.md"), ROOT / "tests/benchmarks/README.md"]
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_document_leads_to_a_file(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    own = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert not [link for link in own if not (document.parent / link).exists()]


def test_every_picture_of_the_documents_is_of_a_page_and_is_shown() -> None:
    pages = {entry.url for _, entries in sitemap.SECTIONS for entry in entries}
    shown = " ".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    for name, address in PICTURES.items():
        assert address.partition("?")[0].removeprefix("/") in pages, address
        assert f"{name}.png)" in shown
    assert {path.stem for path in (ROOT / "docs").glob("*.png")} == set(PICTURES)


def test_every_picture_in_a_document_is_one_that_is_made(tmp_path: Path) -> None:
    for document in DOCUMENTS:
        shown = re.findall(r"!\[[^]]*\]\(([^)\s]+)\)|<img[^>]+src=\"([^\"]+)\"", document.read_text(encoding="utf-8"))
        for name in (one or other for one, other in shown):
            path = (document.parent / name).resolve()
            if path.suffix == ".png" and path.parent == ROOT / "docs":
                assert path.stem in PICTURES, f"{document.name}: {name}"
                assert Image.open(path).size == (WIDTH, HEIGHT)


def test_a_picture_is_another_one_once_a_line_of_text_is_more_on_it(tmp_path: Path) -> None:
    before, after, redrawn = (tmp_path / f"{name}.png" for name in ("before", "after", "redrawn"))
    picture = Image.open(ROOT / "docs" / f"{next(iter(PICTURES))}.png").convert("RGB")
    picture.save(before)
    Image.eval(picture, lambda level: min(255, level + 20)).save(redrawn)  # a font that is drawn a little differently
    picture.paste((0, 0, 0), (300, 500, 1000, 520))
    picture.save(after)
    assert apart(before, before) == 0
    assert apart(before, redrawn) <= MOST < apart(before, after)
    assert apart(before, tmp_path / "missing.png") == 1
