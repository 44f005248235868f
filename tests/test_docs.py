"""What the documents point at is there."""

import ast
import re
import shlex
import sys
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


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readme_is_read_aloud_in_four_minutes(name) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    said = re.sub(r"```.*?```|^    [^\n]*$|!\[[^]]*\]\([^)]*\)|(?<=\])\([^)]*\)", "", text, flags=re.S | re.M)
    minutes = len(re.findall(r"[\w.%]+", said, re.A)) / 160 + len(re.findall(r"[\u4e00-\u9fff]", said)) / 260
    assert minutes <= 4  # at 160 words, 260 characters a minute


def test_both_readmes_have_the_same_numbers_links_pictures_and_code() -> None:
    def parts(name: str) -> tuple[list[str], list[str], list[str]]:
        text = (ROOT / name).read_text(encoding="utf-8").partition("\n![")[2]  # (after the link to the other one)
        links = re.findall(r"\]\(([^)]+)\)", text)
        code = [
            line.partition("#")[0].rstrip()
            for line in text.splitlines()
            if re.match(r" {4}|for |\w+ = |print|import|vf", line)
        ]
        claims = re.sub(r"\]\([^)]*\)|```.*?```|^    [^\n]*$|`[^`]*`", " ", text, flags=re.S | re.M)
        return sorted(re.findall(r"\d[\d,.]*\d|\d", claims)), sorted(links), code

    assert parts("README.md") == parts("README.zh-CN.md")


def test_the_pictures_of_the_readme_are_small_and_its_film_is_short() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    pictures = [ROOT / name for name in re.findall(r"\]\((docs/[\w-]+\.png)\)", text)]
    assert len(pictures) == 6
    assert max(path.stat().st_size for path in pictures) <= 150_000
    film = ROOT / "docs" / "film.webp"
    assert "](docs/film.webp)" in text
    assert film.stat().st_size <= 3_000_000
    shown = Image.open(film)
    durations = []
    for frame in range(getattr(shown, "n_frames", 1)):
        shown.seek(frame)
        shown.load()
        durations.append(shown.info["duration"])
    assert len(durations) > 5
    assert sum(durations) <= 12_000


def test_the_badges_say_what_the_package_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    said = (ROOT / "README.md").read_text(encoding="utf-8")
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert f"badge/python-{'%20%7C%20'.join(versions)}-blue" in said
    assert f"badge/licence-{project['license']}-blue" in said
    assert len(re.findall("/badge/", said)) == 3


def test_what_is_cited_is_this_version_under_this_licence() -> None:
    cited = dict(re.findall(r'^([a-z-]+): "?([^"\n]+)"?$', (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M))
    version, date = re.findall(r"^## ([\d.]+) \((.*)\)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)[0]
    assert cited["version"] == version == vf.__version__
    assert cited["date-released"] == date
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (cited["title"].lower(), cited["abstract"]) == (project["name"], project["description"])
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith(f"{cited['license']} License\n")
    assert cited["license"] == project["license"]


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


READING = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
WAY = {
    file: re.findall(r"`([\w.]+)`", names)
    for file, names in re.findall(r"^- `(vizformer/[\w/]+\.py)`: (.*(?:\n  .*)*)", READING, re.M)
}


def lines_of(file: str, name: str) -> int:
    """The lines of a function, a class or, as "Class.method", a method."""
    node: ast.AST = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    for part in name.split("."):
        (node,) = (one for one in ast.iter_child_nodes(node) if getattr(one, "name", "") == part)
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    return (node.end_lineno or 0) - node.lineno + 1


def test_the_way_from_a_sentence_to_a_proved_head_is_read_in_one_sitting() -> None:
    assert len(WAY) == READING.count("- `vizformer/") >= 15
    assert sum(lines_of(file, name) for file, names in WAY.items() for name in names) <= 1000


def test_the_models_files_on_the_way_import_nothing_that_is_not_named() -> None:
    named = {file.removesuffix(".py").replace("/", ".") for file in re.findall(r"`(vizformer/[\w/]+\.py)`", READING)}
    allowed = named | set(sys.stdlib_module_names) | {"torch", "jaxtyping"}
    for file in (file for file in WAY if file.startswith("vizformer/model/")):
        for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:  # what is imported when it is loaded
            modules = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for module in modules:
                known = module if module.startswith("vizformer") else module.partition(".")[0]
                assert known in allowed or (known == "numpy" and file.endswith("records.py")), f"{file}: {module}"


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


def test_the_site_has_every_page_of_the_documentation() -> None:
    site = (ROOT / "tools" / "site" / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"[\w.-]+\.md", site.partition("\nnav:")[2])
    assert sorted(listed) == sorted(["index.md", "README.zh-CN.md", *(path.name for path in ROOT.glob("docs/*.md"))])


def test_a_docstring_says_of_each_argument_by_itself_what_it_is() -> None:
    """The reference of the site has a row for each; two in one line are none that the function has."""
    public = [
        ROOT / "vizformer" / name
        for name in ("analysis", "checkpoints", "components", "explain", "figures", "recorder")
    ]
    several = re.compile(r"^ {8}\w+(?:, \w+)+: ", re.MULTILINE)
    found = [
        f"{path.name}: {node.name}"
        for folder in public
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and several.search((ast.get_docstring(node, clean=False) or "").partition("Args:")[2])
    ]
    assert found == []
