"""What the site has beside docs/: the READMEs, the first page of the app without its server, and a page for the public
names of each package, from their docstrings."""

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from vizformer import cli

ROOT = Path(__file__).resolve().parents[2]
READMES = {"index.md": "README.md", "README.zh-CN.md": "README.zh-CN.md"}
ALIVE = {  # what the link to the first page without its server says
    "index.md": "Press a head, a bar, a number: three sentences on a page of their own",
    "README.zh-CN.md": "点一个头、一根条、一个数：三个句子，单独一页",
}
# In front of the film; as tall as what it shows. On a phone there is the link alone: a page inside a page catches fingers.
FRAME = """
<style>
.vf-alive {{ border: 0; height: 800px; width: 100% }}
@media (max-width: 60em) {{ .vf-alive {{ display: none }} }}
</style>
<iframe class="vf-alive" src="first_page.html" title="{title}" loading="lazy"
onload="new ResizeObserver(([body]) => this.style.height = `${{body.target.offsetHeight + 40}}px`)
.observe(this.contentDocument.body)"></iframe>

[{title}](first_page.html)

"""
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
        text = text.replace("\n![", FRAME.format(title=ALIVE[page]) + "![", 1)
        files.append(File.generated(config, page, content=f"---\nhide: [navigation, toc]\n---\n{text}"))
    saved = ROOT / "build" / "first_page.html"
    saved.parent.mkdir(exist_ok=True)
    cli.page.callback(saved)
    files.append(File.generated(config, saved.name, abs_src_path=str(saved)))
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
