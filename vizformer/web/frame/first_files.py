"""What a browser asks for first, answered from memory: the page at an address of ours, and Streamlit's own scripts.

The page holds what every run of every page would send otherwise: styles, and scripts that mend Streamlit's (`assets/`).

A first visit asks for more than a hundred files.  Streamlit looks up each of them on the disk, through all its routes: 3 ms
of the server each.  And the browser hears of the scripts of boxes and pictures when the first of them arrives; here the page
names those that every page needs, so that they come along with the others.  The largest are held until they are needed:
at their addresses stands a small script (assets/held.js) that fetches them, from the same address with a query.
"""

import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, parse_qsl, quote, urlencode

import streamlit as st
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from streamlit import file_util

from vizformer.assets import asset
from vizformer.web.frame import first_picture, inline_scripts, term_sentences
from vizformer.web.frame.sitemap import HOME, PAGES, Entry
from vizformer.web.inside_streamlit import STATIC_ASSET_CACHE_MAX_AGE_SECONDS, _ensure_xsrf_cookie
from vizformer.web.link.gone_parts import MOVED
from vizformer.web.link.languages import SOURCE, match

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LARGEST = 5 * 2**20  # bytes of a file that is kept; all of Streamlit's scripts that are smaller take some 20 MiB
ALWAYS = (  # of Streamlit's sources: what is on every page
    *("elements/Html/Html.tsx", "elements/PageLink/PageLink.tsx", "elements/Spinner/Spinner.tsx"),
    *("widgets/BidiComponent/BidiComponent.tsx", "widgets/Button/Button.tsx", "widgets/ButtonGroup/ButtonGroup.tsx"),
    *("widgets/Checkbox/Checkbox.tsx", "widgets/Selectbox/Selectbox.tsx", "widgets/TextInput/TextInput.tsx"),
)
LATER = ("elements/PlotlyChart/PlotlyChart.tsx", "widgets/Slider/Slider.tsx", "rehype-katex/index.js")
_FIGURE = "[class*=st-key-chart-]:not(:has([class*=st-key-first-]))"  # that has no image in its place
HELD = {  # scripts that take a browser half a second and more, and which empty places wait for what they draw
    "elements/PlotlyChart/PlotlyChart.tsx": f"{_FIGURE} [data-testid=stSkeleton]",
    "elements/CodeBlock/StreamlitSyntaxHighlighter.tsx": ":not(.stPrintGraphic) > [data-testid=stSkeleton]",
}
WHOLE = "whole"  # the query with which a held script is asked for
MISSING, LONGEST_NAME = (
    "missing",
    60,
)  # the parameter that names an address that is no page, and how much of it in characters
BARE = frozenset({"slide", "embed", "embed_options"})  # what makes a page come without its bar
TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".woff2": "font/woff2"}
_STATIC = re.compile(r"static/(?:js|css|media)/[\w-][\w.-]{0,200}", re.ASCII)
_ONE_PART = re.compile(r"(?!oauth2callback)[^_./][^/.]*[.]?")  # an address of one part, which is no file
# An address of several parts, of which none is Streamlit's own or a file.
_DEEPER = re.compile(r"(?!(?:static|media|component|app|oauth2callback)/)[^_./][^/.]*(?:/[^\W_][^/.]*)+/?")
_ROOT = '<div id="root"></div>'


class FirstFiles:
    """ASGI middleware: answers what it has, and hands everything else on."""

    def __init__(self, app: "ASGIApp") -> None:
        self._app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        answer = found(scope) if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") else None
        await (answer or self._app)(scope, receive, send)


def found(scope: "Scope") -> Response | None:
    """The answer to a request, if it is for one of these files."""
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    path = scope["path"].removeprefix(f"/{base}") if base else scope["path"]
    if (base and path == scope["path"]) or not path.startswith("/"):
        return None  # "/" alone, beside a base, is none of ours; Streamlit sends on what comes without the last slash
    headers, name = Headers(scope=scope), path[1:]
    if (entry := pages().get(name)) is None and (
        _ONE_PART.fullmatch(name) or (_DEEPER.fullmatch(name) and "text/html" in headers.get("accept", ""))
    ):
        return _nearest(base, name, scope["query_string"].decode("latin-1"))
    if entry is not None:
        told = parse_qs(scope["query_string"][:10_000].decode("latin-1"))
        language = match(told.get("lang", [""])[0]) or preferred(headers.get("accept-language", ""))
        packed = "gzip" in headers.get("accept-encoding", "")
        has_picture = not name and not scope["query_string"]
        content, stamp = index(language, None if BARE & told.keys() else entry, has_picture=has_picture, packed=packed)
        said = {"Cache-Control": "private, no-cache", "Vary": "Accept-Encoding, Accept-Language"}
        if packed:
            said["Content-Encoding"] = "gzip"
        answer = _answer(scope, headers, content, stamp, "text/html; charset=utf-8", said)
        _ensure_xsrf_cookie(Request(scope), answer)  # by which a browser is known: it connects before it asks for more
        return answer
    if not _STATIC.fullmatch(name) or "range" in headers or (kept := static(name)) is None:
        return None
    content, stamp = kept
    if name in held() and scope["query_string"] != WHOLE.encode():
        own = held()[name]
        return _answer(scope, headers, own, _stamp(own), TYPES[".js"], {"Cache-Control": "no-cache"})
    said = {"Cache-Control": f"public, immutable, max-age={STATIC_ASSET_CACHE_MAX_AGE_SECONDS}"}
    return _answer(scope, headers, content, stamp, TYPES[Path(name).suffix], said)


def _nearest(base: str, name: str, query: str) -> Response:
    """The way from an address that is no page to the page that it begins with, or to the nearest one, which names it."""
    first = re.split(r"[^\w-]", name, maxsplit=1)[0]  # (a link that was copied with the full stop behind it)
    said = [] if first and first in pages() else [f"{MISSING}={quote(name[:LONGEST_NAME], safe='')}"]
    if first in MOVED:
        given = parse_qsl(query[:10_000], keep_blank_values=True)
        first, __, part = MOVED.get(f"{first}/{dict(given).get('part', '')}", MOVED[first]).partition("?")
        query = "&".join(
            [part, urlencode([(field, value) for field, value in given if field not in ("part", "dials")])]
        )
    elif said:
        first = ""
    query = "&".join(filter(None, [*said, query.strip("&")]))
    there = f"{'/' if base else ''}{base}/{first}{'?' if query else ''}{query}"
    return Response(status_code=307, headers={"Location": there, "Cache-Control": "no-store"})


def _answer(scope: "Scope", headers: Headers, content: bytes, stamp: str, kind: str, said: dict[str, str]) -> Response:
    said = {**said, "ETag": stamp}
    if stamp in re.split(r"\s*,\s*", headers.get("if-none-match", "")):
        return Response(status_code=304, headers=said)
    if scope["method"] == "HEAD":
        return Response(headers={**said, "Content-Length": str(len(content))}, media_type=kind)
    return Response(content, headers=said, media_type=kind)


def preferred(accepted: str) -> str:
    """The language of the app that a browser asks for first; it sends the one that its pages are told of before others."""
    return match(re.split(r"[,;]", accepted[:100])[0].strip()) or SOURCE


@cache
def pages() -> dict[str, Entry]:
    """The pages by their paths; the first one is at "" too."""
    return {"": HOME, **PAGES}


@cache
def _folder() -> Path:
    return Path(file_util.get_static_dir())


@lru_cache(maxsize=2000)  # files that there are: names of others are not kept
def _kept(name: str) -> tuple[bytes, str]:
    content = (_folder() / name).read_bytes()
    return content, _stamp(content)


def static(name: str) -> tuple[bytes, str] | None:
    """A file of Streamlit's and its stamp; None where there is none, or it is too large or of another kind."""
    path = _folder() / name
    if path.suffix not in TYPES or not path.is_file() or path.stat().st_size > LARGEST:
        return None
    return _kept(name)


@cache
def held() -> dict[str, bytes]:
    """The scripts that stand in the place of large ones, by the names of their files; each hands on what that one has."""
    found = {}
    for source, place in HELD.items():
        for name in (entry["file"] for key, entry in _manifest().items() if key.endswith(source)):
            names = re.search(r"export\{([^{}]*)\};?\s*$", _kept(name)[0].decode())
            given = [one.split(" as ")[-1].strip() for one in names[1].split(",")] if names else []
            if given and all(map(str.isidentifier, given)):
                own = asset("held.js").read_text(encoding="utf-8").replace("PLACE", place)
                own = own.replace("FILE", Path(name).name) + "".join(
                    "export default whole.default;\n" if one == "default" else f"export const {one} = whole.{one};\n"
                    for one in given
                )
                found[name] = own.encode()
    return found


def _stamp(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


_indexes: dict[tuple[str, str | None, bool, bool], tuple[str, bytes, str]] = {}


def index(language: str, entry: Entry | None, *, has_picture: bool, packed: bool) -> tuple[bytes, str]:
    """The HTML of an address and its stamp, for a language and a page (None: a page without the bar)."""
    picture = first_picture.picture(language) if has_picture else ""
    key = (language, None if entry is None else entry.url, has_picture, packed)
    if key not in _indexes or _indexes[key][0] != picture:  # which may have been made anew
        content = _first(language, entry, picture).encode()
        stamp = _stamp(content + bytes([packed]))
        _indexes[key] = (picture, gzip.compress(content, 6, mtime=0) if packed else content, stamp)
    return _indexes[key][1:]


def _first(language: str, entry: Entry | None, picture: str) -> str:
    text = (_folder() / "index.html").read_text(encoding="utf-8")
    links = "".join(f'<link rel="modulepreload" crossorigin href="./{name}">' for name in _scripts(ALWAYS, text))
    text = text.replace("</head>", f"{links}</head>").replace("<title>Streamlit</title>", "<title>VizFormer</title>")
    text = text.replace('<html lang="en">', f'<html lang="{language.replace("_", "-")}">')
    host = {"allowedOrigins": st.get_option("client.allowedOrigins"), "useExternalAuthToken": False}
    parts = [
        _ROOT,
        inline_scripts.written("connect.js", host=json.dumps(host)),
        *map(inline_scripts.written, ("history.js", "accessible.js")),
        inline_scripts.written("terms.js", address=term_sentences.address()),
        f"<style>{asset('app.css').read_text(encoding='utf-8')}</style>",  # before anything of the app is drawn
    ]
    if entry is not None:
        parts.append(first_picture.markup(language, entry, picture, _scripts(LATER, text)))
    return text.replace(_ROOT, "".join(parts))


def _scripts(sources: tuple[str, ...], text: str) -> list[str]:
    """The scripts made of these sources, and what they need themselves, but for those that the page names already."""
    wanted = [key for key in _manifest() if key.endswith(sources)]
    return [name for name in dict.fromkeys(_needed(wanted)) if name not in text]


def _needed(keys: Iterable[str]) -> Iterator[str]:
    manifest, waiting, seen = _manifest(), list(keys), set()
    while waiting:
        if (key := waiting.pop(0)) in seen or key not in manifest:
            continue
        seen.add(key)
        yield manifest[key]["file"]
        waiting += manifest[key].get("imports", ())


@cache
def _manifest() -> dict[str, dict[str, Any]]:
    """What Streamlit's builder says of its scripts: by their sources, the files and what they import."""
    found: dict[str, dict[str, Any]] = json.loads((_folder() / "manifest.json").read_text(encoding="utf-8"))
    return found
