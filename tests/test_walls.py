"""The walls that import-linter cannot see: pages and app.py are no packages, and laziness is no import rule."""

import ast
import importlib.util
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import grimp
import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "pages").rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Every module that the file imports, as `package.module` (names taken from a module count as modules)."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import leads from one page to another"
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_pages_lie_in_subfolders():
    # A *.py directly in pages/ switches Streamlit to its old multipage mode (docs/architecture.md).
    assert PAGES
    assert not list((ROOT / "pages").glob("*.py"))


def test_no_function_has_the_name_of_its_module():
    """`from package import name` would give the module, or the function, by who imported what before."""
    for path in (ROOT / "vizformer").rglob("*.py"):
        own = [getattr(node, "name", None) for node in ast.parse(path.read_text(encoding="utf-8")).body]
        assert path.stem not in own, path


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_imports_neither_torch_nor_another_page(page):
    for name in imports(page):
        assert name.split(".")[0] not in ("torch", "transformers", "tokenizers", "safetensors", "pages", "recipes"), (
            name
        )
        assert name.split(".")[0] != "plotly", "figures are made in vizformer/figures"


def test_nothing_that_is_shared_lies_in_a_cache_that_a_browser_can_empty():
    # Streamlit's caches have no bound of bytes, and any client can send clear_cache
    # (vizformer/web/catalogue/bounded_cache.py).
    for path in [*PAGES, *(ROOT / "vizformer").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        assert "st.cache_" not in text, path
        assert "cache_resource" not in text, path


def test_every_page_is_in_the_navigation():
    from vizformer.web.frame import sitemap

    listed = {entry.file for entry in sitemap.PAGES.values()}
    assert listed == {page.relative_to(ROOT).as_posix() for page in PAGES}


def test_the_door_is_only_a_door():
    assert {name.split(".")[0] for name in imports(ROOT / "app.py")} == {"streamlit", "vizformer"}
    assert len((ROOT / "app.py").read_text().splitlines()) < 20


def test_no_module_imports_itself_by_way_of_others():
    graph = grimp.build_graph("vizformer", exclude_type_checking_imports=True, cache_dir=None)
    imported = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imported) > 500
    TopologicalSorter(imported).prepare()  # raises CycleError, which names the circle


HEAVY = ("torch", "transformers", "tokenizers", "safetensors")


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import vizformer", (*HEAVY, "streamlit", "plotly", "numpy")),
        ("import vizformer.figures", (*HEAVY, "streamlit")),
        ("import vizformer.components", HEAVY),
        (
            "from vizformer.analysis import Corpus, head_maps",
            ("vizformer.analysis.causes", "vizformer.analysis.side_by_side"),
        ),
        ("import vizformer.config", (*HEAVY, "streamlit", "plotly", "numpy")),
        ("import vizformer.cli", (*HEAVY, "streamlit", "plotly", "numpy")),
        (
            "from vizformer.web.frame import head_routes, page_frame, server; from vizformer.web.words import errors, i18n",
            HEAVY,
        ),
        ("import vizformer as vf; vf.figures; vf.errors.VizformerError; vf.ModelConfig", (*HEAVY, "streamlit")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_light_parts_load_nothing_heavy(statement, absent):
    code = f"{statement}\nimport sys\nprint(*[name for name in {absent!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.split() == []


@pytest.mark.parametrize(
    "package", ["", ".analysis", ".checkpoints", ".components", ".explain", ".figures", ".generation", ".text"]
)
def test_the_public_names_are_there(package):
    room = import_module(f"vizformer{package}")
    assert room.__all__
    for name in room.__all__:
        assert getattr(room, name) is getattr(room, name)  # found, and then kept
        if not isinstance(getattr(room, name), ModuleType):  # whoever imports a module of this name would find that one
            assert importlib.util.find_spec(f"{room.__name__}.{name}") is None
        assert name in dir(room)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        room.nothing  # noqa: B018 (looking it up is the test)


def test_what_streamlit_does_not_document_is_used_by_one_file():
    private = re.compile(
        r"^\s*(?:from|import) streamlit\.(?!delta_generator\b|web import cli\b|testing\b)", re.MULTILINE
    )
    found = [
        file for file in ROOT.joinpath("vizformer").rglob("*.py") if private.search(file.read_text(encoding="utf-8"))
    ]
    assert [file.name for file in found] == ["inside_streamlit.py"]
