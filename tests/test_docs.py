"""What the documents point at is there."""

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from plotly.basedatatypes import BaseFigure

import vizformer as vf
from tools import reference
from tools.screenshots import MOST, PICTURES, apart
from vizformer.cli import main
from vizformer.web.frame import sitemap

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("deploy/*.md"),
        ROOT / "tests/benchmarks/README.md",
        ROOT / "recipes/README.md",
    ]
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_document_leads_to_a_file(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    own = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert not [link for link in own if not (document.parent / link).exists()]


def test_every_picture_of_the_documents_is_of_a_page_and_is_shown() -> None:
    pages = set(sitemap.PAGES)
    shown = " ".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    for name, shot in PICTURES.items():
        assert shot.address.partition("?")[0].removeprefix("/") in pages, shot.address
        assert f"{name}.png)" in shown
    assert {path.stem for path in (ROOT / "docs").glob("*.png")} == set(PICTURES)


def test_every_picture_in_a_document_is_one_that_is_made(tmp_path: Path) -> None:
    for document in DOCUMENTS:
        shown = re.findall(r"!\[[^]]*\]\(([^)\s]+)\)|<img[^>]+src=\"([^\"]+)\"", document.read_text(encoding="utf-8"))
        for name in (one or other for one, other in shown):
            path = (document.parent / name).resolve()
            if path.suffix == ".png" and path.parent == ROOT / "docs":
                assert path.stem in PICTURES, f"{document.name}: {name}"
                shot, size = PICTURES[path.stem], Image.open(path).size
                assert size == (shot.width, shot.height) or (shot.selector and size <= (shot.width, shot.height))


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


def test_the_reference_lists_what_there_is() -> None:
    assert reference.FILE.read_text(encoding="utf-8") == reference.written(), "`make reference` writes it anew"


@pytest.mark.parametrize(
    ("part", "of", "name"),
    [
        (reference.variables, "VARIABLES", "VIZFORMER_DEVICE"),
        (reference.options, "meanings", "rope_theta"),
    ],
)
def test_what_nothing_is_said_of_is_refused(
    part: Callable[[], Iterator[str]], of: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = getattr(reference, of)

    def without(*given: Any) -> dict[str, str]:
        return {key: text for key, text in known(*given).items() if key != name}

    said = without if callable(known) else {key: text for key, text in known.items() if key != name}
    monkeypatch.setattr(reference, of, said)
    with pytest.raises(AssertionError, match=name):
        list(part())


def test_the_readme_is_read_in_a_few_minutes() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 900


def test_the_reference_tells_of_every_page() -> None:
    listed = reference.FILE.read_text(encoding="utf-8").split("## Pages")[1].split("\n## ")[0]
    assert {entry.title for entry in sitemap.PAGES.values() if f"| {entry.title} |" not in listed} == set()


CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


def layers(package: str) -> list[set[str]]:
    """The rooms of a package by the contract of its layers, those that import nothing of the others first."""
    inside = [one for one in CONTRACTS if one["type"] == "layers" and one.get("containers") == [package]]
    if not inside:
        inside = [one for one in CONTRACTS if one["type"] == "layers" and one["layers"][0].startswith(f"{package}.")]
    (contract,) = inside
    return [set(re.findall(r"(\w+)(?= |\)|$)", layer)) for layer in reversed(contract["layers"])]


@pytest.mark.parametrize("package", ["vizformer", "vizformer.checkpoints", "vizformer.analysis", "vizformer.web"])
def test_the_tables_of_the_architecture_have_every_room_in_order(package: str) -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.split(f"## The rooms of {package.removeprefix('vizformer.')}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", table, re.M)
    listed = [set(re.findall(r"`(\w+)/?`", cell)) for cell in cells]
    folder = ROOT / package.replace(".", "/")
    rooms = {path.parent.name for path in folder.glob("*/__init__.py")}
    modules = {path.stem for path in folder.glob("[a-z]*.py")}
    assert set().union(*listed) == rooms | modules
    if package != "vizformer.analysis":
        order = {name: row for row, names in enumerate(listed) for name in names}
        below = layers(package)
        for lower, upper in pairwise(below):
            assert max(order[name] for name in lower) <= min(order[name] for name in upper)


def having(pattern: str) -> list[Path]:
    """The documents about today in which it is found."""
    today = [path for path in DOCUMENTS if path.name != "CHANGELOG.md"]
    return [path for path in today if re.search(pattern, path.read_text(encoding="utf-8"), re.M)]


@pytest.fixture
def at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the documents take for granted: a text read by `transformers`, a path, a saved trace, a folder to write to."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(BaseFigure, "show", lambda self: None)  # which opens a browser
    maps = torch.full((1, 2, 3, 3), 1 / 3)
    outputs = SimpleNamespace(attentions=(maps, maps))
    given = {"vf": vf, "outputs": outputs, "tokens": list("abc"), "arrays": np.asarray(maps), "path": "zh-en"}
    trace = vf.load("zh-en").trace("我有一只猫。")
    trace.save("trace.safetensors")
    return {**given, "trace": trace}


PYTHON = r"^```python\n(.*?)^```$"
CALL = r"`(vf\.[\w.]+)(\([^`]*\))?[^`]*`"
COMMAND = r"^ {4,}vizformer ([^#\n]+)|`vizformer ([^`]+)`"


@pytest.mark.parametrize("document", having(r"^```python"), ids=lambda path: path.name)
@pytest.mark.sample(1)
def test_the_python_of_a_document_runs(document: Path, at_hand: dict[str, Any]) -> None:
    for code in re.findall(PYTHON, document.read_text(encoding="utf-8"), re.M | re.S):
        exec(compile(code, document.name, "exec"), at_hand)


@pytest.mark.parametrize("document", having(CALL), ids=lambda path: path.name)
@pytest.mark.sample(2)
def test_what_a_document_names_in_python_is_there(document: Path, at_hand: dict[str, Any]) -> None:
    for name, call in re.findall(CALL, document.read_text(encoding="utf-8")):
        assert eval(name, at_hand) is not None
        if call and "..." not in call and ("cuda" not in call or torch.cuda.is_available()):
            eval(name + call, at_hand)


@pytest.mark.parametrize("document", having(COMMAND), ids=lambda path: path.name)
def test_the_commands_of_a_document_are_understood(document: Path, at_hand: dict[str, Any]) -> None:
    Path("DIR").mkdir()
    for name in ("my.txt", "FILE", "DATA"):
        Path(name).touch()
    for found in re.findall(COMMAND, document.read_text(encoding="utf-8"), re.M):
        words = [{"NAME": "zh-en", "N": "2"}.get(word, word) for word in shlex.split("".join(found))]
        first = next((i for i, word in enumerate(words) if word in main.commands), len(words))
        with main.make_context("vizformer", words[:first], resilient_parsing=False) as context:
            if first < len(words):
                main.commands[words[first]].make_context(words[first], words[first + 1 :], parent=context)
