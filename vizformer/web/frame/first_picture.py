"""What a page shows before any script has come: the bar and its title, and of the first page its picture, finished.

It lies over the app, which is hidden until its page has come to rest: what is not finished is not seen moving.  The picture
is what a link without parameters shows: drawn by the same script as the live one, from what the live one is sent.  Nothing
of it can be pressed or read out.  It is made when the server starts (`server.visit`); for those who come within the first
seconds, assets/first_picture holds what the bundled models gave (`make picture`).
"""

import base64
import html
import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit import file_util

from vizformer.assets import asset
from vizformer.components import _bundle
from vizformer.web.frame.sitemap import DOORS, Entry
from vizformer.web.link.languages import catalogue

COMPONENT = "whole_model_picture"
_COLOURS = {
    "background-color": "backgroundColor",
    "secondary-background-color": "secondaryBackgroundColor",
    "text-color": "textColor",
    "primary-color": "primaryColor",
    "border-color": "borderColor",
}
_PRESSED = re.compile(  # words that stand there only after a press
    "vector_|in_|row_of|terms|(same|other)_row|which_number|.*_(is|are)$|norm_|(layer|rms)_norm"
    "|way$|own$|back$|which_layer|output_here|lane_alone|fetching|not_come|no_operands|products|which$|and_bias|holds|differs"
)
_COMMENT = re.compile(r"^//.*|/\*.*?\*/ ?|  // .*")
_made: dict[str, str] = {}


def take(language: str, sent: Any) -> bool:
    """Keeps what the live picture of this language was sent (a message of Streamlit's); whether it is that picture's."""
    if not sent.component_name.endswith(COMPONENT):
        return False
    _made[language] = content(sent)
    return True


def content(sent: Any) -> str:
    """What a component was sent, as JSON; its columns of numbers as base64."""
    import pyarrow as pa

    data, types = json.loads(sent.mixed.json), {}
    for name, value in data.items():
        blob = (
            sent.mixed.arrow_blobs.get(next(iter(value.values()), ""))
            if isinstance(value, dict) and len(value) == 1
            else None
        )
        if blob is not None:
            column = pa.ipc.open_stream(blob.data).read_all()[0].to_numpy()
            data[name], types[name] = base64.b64encode(column.tobytes()).decode("ascii"), column.dtype.name
    for name in (
        "key",
        "version",
        "selected",
        "addresses",
        "scores",
        "totals",
        "reports",
    ):  # (nothing of it can be pressed)
        data.pop(name, None)
    row = data["look"][2]  # (the others are seen after a press)
    data["candidates"] = [one if at == row else [] for at, one in enumerate(data["candidates"])]
    data["words"] = {name: said for name, said in data["words"].items() if not _PRESSED.match(name)}
    types = {name: type_ for name, type_ in types.items() if name in data}
    return json.dumps(
        {**data, "types": types, "static": True, "version": 1, "selected": None}, ensure_ascii=False, sort_keys=True
    )


def kept(language: str) -> Path:
    """Where the picture lies that comes with the program."""
    return asset("first_picture", f"{language}.json")


def picture(language: str) -> str:
    """The picture of the first page, as the data of its script; empty where there is none."""
    return _made.get(language) or _kept(language)


@cache
def _kept(language: str) -> str:
    path = kept(language)
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def markup(language: str, entry: Entry, data: str, later: Iterable[str] = ()) -> str:
    """What stands in a page beside the place of the app: its picture, if any, and files that are needed `later`."""
    said = (entry.heading.text, *(door.door.text for door in DOORS))
    title, *doors = (html.escape(catalogue(language).get(text, text)) for text in said)
    bar = f"<b>VizFormer</b>{''.join(f'<span>{door}</span>' for door in doors)}"
    return (
        "<noscript><style>#first-picture { display: none; }</style></noscript>"
        f'<div id="first-picture" aria-hidden="true" inert data-later="{" ".join(later)}">'
        f'<template shadowrootmode="open"><style>{_style()}</style>'
        f'<div class="bar">{bar}</div><main><h1>{title}</h1><div class="picture"></div></main></template>'
        f'<script type="application/json">{data.replace("<", chr(92) + "u003c")}</script></div>'
        f"<script>{script()}</script>"
    )


@cache
def script() -> str:
    """The script that draws it and takes it away; it may stand in the page by its hash."""
    folder = Path(_bundle.__file__).parent
    own = asset("first_picture", "first_picture.js").read_text(encoding="utf-8")
    component = _bundle.bundle(folder / f"{COMPONENT}.js").replace("export default ", "")
    return _bare(f"(() => {{\n{component}\n{{\n{own}}}\n}})();")


@cache
def _style() -> str:
    folder = Path(_bundle.__file__).parent
    index = Path(file_util.get_static_dir(), "index.html").read_text(encoding="utf-8")
    font = re.search(r'href="\./([^"]+\.woff2)"', index)
    face = (
        f"@font-face {{ font-family: 'Source Sans'; src: url('./{font[1]}'); font-weight: 200 900; }}" if font else ""
    )
    dark, light = _theme("dark"), _theme("light")
    sheets = [folder / "common.css", folder / f"{COMPONENT}.css", asset("first_picture", "first_picture.css")]
    return _bare(
        "\n".join(
            [
                face,
                f":host {{ {light} color-scheme: light; --st-font: {st.get_option('theme.font')}; "
                f"--st-base-radius: {st.get_option('theme.baseRadius')}; }}",
                f"@media (prefers-color-scheme: dark) {{ :host(:not(.light)) {{ {dark} color-scheme: dark; }} }}",
                f":host(.dark) {{ {dark} color-scheme: dark; }}",
                *(sheet.read_text(encoding="utf-8") for sheet in sheets),
            ]
        )
    )


def _bare(source: str) -> str:
    """A script or a sheet without indentation and comments: every first visitor waits for it."""
    lines = (_COMMENT.sub("", line.strip()).rstrip() for line in source.splitlines())
    return "\n".join(filter(None, lines))


def _theme(name: str) -> str:
    return " ".join(f"--st-{ours}: {st.get_option(f'theme.{name}.{theirs}')};" for ours, theirs in _COLOURS.items())
