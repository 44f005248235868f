"""What the documents point at is there."""

import re
from pathlib import Path

import pytest

from tools.screenshots import PICTURES
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
