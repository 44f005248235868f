"""What the site has beside docs/: the READMEs, and a page for the public names of each package, from their docstrings."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
READMES = {"index.md": "README.md", "README.zh-CN.md": "README.zh-CN.md"}
PACKAGES = ("vizformer", "vizformer.analysis", "vizformer.explain", "vizformer.figures", "vizformer.components")
_BADGE = re.compile(r"^!\[[^\]]*\]\(https:.*\)\n", re.MULTILINE)  # a picture that another host would be asked for
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


def on_config(config: Any) -> Any:
    config.nav.append({"API": [{name: f"api/{name}.md"} for name in PACKAGES]})
    return config


def on_files(files: Files, config: Any) -> Files:
    for page, readme in READMES.items():
        text = _BADGE.sub("", (ROOT / readme).read_text(encoding="utf-8"))
        text = text.replace("](docs/", "](").replace("](README.md)", "](index.md)")
        files.append(File.generated(config, page, content=text))
    for package in PACKAGES:
        files.append(File.generated(config, f"api/{package}.md", content=_public(package)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Names the files of the repository that are no pages instead of linking to them."""

    def link(found: re.Match[str]) -> str:
        picture, text, goal = found.groups()
        path = (Path(page.file.src_uri).parent / goal.partition("#")[0]).as_posix()
        if picture or files.get_file_from_path(path) is not None:
            return found[0]
        return text if text.strip("`") == path.removeprefix("../") else f"{text} (`{path.removeprefix('../')}`)"

    return _LINK.sub(link, markdown)


def _public(package: str) -> str:
    """The page of a package: its docstring, and each function and class that it hands out, where it is defined."""
    module = import_module(package)
    lines = [f"# {package}", "", inspect.getdoc(module) or "", ""]
    for name in sorted(module.__all__, key=str.lower):
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            lines += [f"::: {thing.__module__}.{thing.__qualname__}", ""]
    return "\n".join(lines)
