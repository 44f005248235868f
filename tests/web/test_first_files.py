"""What a browser asks for first: the same files as Streamlit's own, and the page with what comes along with it."""

import asyncio
import gzip
import html
import json
import re
from pathlib import Path

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from streamlit import file_util
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string

from tools import first_picture as tool
from vizformer.assets import asset
from vizformer.web.frame import first_files, first_picture, inline_scripts, page_frame, server
from vizformer.web.frame.first_files import FirstFiles
from vizformer.web.frame.sitemap import PAGES
from vizformer.web.link.languages import LANGUAGES

STATIC = Path(file_util.get_static_dir())
SCRIPT = next(path.name for path in (STATIC / "static" / "js").glob("index.*.js"))
PICTURE, NO_PICTURE = b'<div id="first-picture"', b'<script type="application/json"></script>'


async def _streamlit(request: Request) -> PlainTextResponse:
    return PlainTextResponse("Streamlit")


class Answer:
    """What is answered to one request."""

    def __init__(self, path: str, method: str = "GET", query: str = "", **headers: str) -> None:
        self.status, self.headers, self.body = 0, {}, b""
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        }

        async def receive():
            return {"type": "http.request", "body": b""}

        async def send(message):
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            else:
                self.body += message.get("body", b"")

        app = FirstFiles(Starlette(routes=[Route("/{rest:path}", _streamlit, methods=["GET", "HEAD", "POST"])]))
        asyncio.run(app(scope, receive, send))

    @property
    def is_streamlits(self) -> bool:
        return self.body == b"Streamlit"


@pytest.fixture(params=["", "school/app"])
def base(request, monkeypatch):
    options = st.get_option
    monkeypatch.setattr(st, "get_option", lambda name: request.param if name == "server.baseUrlPath" else options(name))
    return f"/{request.param}" if request.param else ""


def test_a_script_is_streamlits_file_byte_for_byte_and_stays_in_the_browser(base):
    answer = Answer(f"{base}/static/js/{SCRIPT}")
    assert answer.body == (STATIC / "static" / "js" / SCRIPT).read_bytes()
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]
    again = Answer(f"{base}/static/js/{SCRIPT}", if_none_match=answer.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    head = Answer(f"{base}/static/js/{SCRIPT}", method="HEAD")
    assert (head.headers["content-length"], head.body) == (str(len(answer.body)), b"")


def test_a_large_script_is_held_by_one_that_hands_on_all_that_it_has(base):
    assert len(first_files.held()) == len(first_files.HELD)
    for name in first_files.held():
        own = (STATIC / name).read_bytes()
        whole = Answer(f"{base}/{name}", query="whole")
        assert whole.body == own
        assert "immutable" in whole.headers["cache-control"]
        holding = Answer(f"{base}/{name}")
        assert holding.body == Answer(f"{base}/{name}", query="anything=else").body
        assert holding.headers["cache-control"] == "no-cache"  # another version may hold in another way
        assert Answer(f"{base}/{name}", if_none_match=holding.headers["etag"]).status == 304
        text = holding.body.decode()
        assert f'import("./{Path(name).name}?whole")' in text
        given = re.search(r"export\{([^{}]*)\};?\s*$", own.decode())[1]
        handed_on = re.findall(r"^export (?:const )?(\w+)", text, re.MULTILINE)
        assert handed_on == [one.split(" as ")[-1] for one in given.split(",")]


@pytest.mark.parametrize(
    "path",
    [
        "/static/js/../../index.html",
        "/static/js/..%2f..%2findex.html",
        "/static/js/nothing.js",
        "/static/js/",
        "/static/js//etc/passwd",
        "/static/manifest.json",
        "/static/js/.hidden.js",
        "//static/js/index.js",
        "/_stcore/health",
        "/_stcore/host-config",
        "/masks/_stcore/health",
        "/favicon.png",
        "/nowhere/deeper",
        "/masks/",
    ],
)
def test_everything_else_is_streamlits(path):
    assert Answer(path).is_streamlits


@pytest.mark.parametrize(
    ("path", "query", "there"),
    [
        ("/masks/part/two", "lang=zh", "/masks?lang=zh"),
        ("/nowhere/deeper", "", "/?missing=nowhere%2Fdeeper"),
        ("/不存在/页/", "text=%E7%8C%AB", "/?missing=%E4%B8%8D%E5%AD%98%E5%9C%A8%2F%E9%A1%B5%2F&text=%E7%8C%AB"),
        ("/heads//evil.example", "", None),
        ("/masks/_stcore/health", "", None),
        ("/static/js/nothing", "", None),
        ("/media/file", "", None),
    ],
)
def test_an_address_of_several_parts_leads_to_the_page_that_it_begins_with(base, path, query, there):
    answer = Answer(base + path, query=query, accept="text/html,*/*;q=0.8")
    if there is None:
        assert answer.is_streamlits
    else:
        assert (answer.status, answer.headers["location"]) == (307, base + there)
        assert Answer(base + path, query=query, accept="*/*").is_streamlits


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/nowhere", "/?missing=nowhere&lang=en"),
        ("/errors", "/training?missing=errors&part=dropout&lang=en"),
        ("/learn", "/path?missing=learn&lang=en"),
        ("/reading", "/glossary?missing=reading&dials=glossary.list:reading&lang=en"),
        ("/masks.", "/masks?lang=en"),  # as links end that were copied with the sentence around them
        ("/masks，第三部分", "/masks?lang=en"),
        ("/2017", "/?missing=2017&lang=en"),
        ("/*no*", "/?missing=%2Ano%2A&lang=en"),
        ("/a&text=b#c", "/?missing=a%26text%3Db%23c&lang=en"),
        ("/" + "n" * 200, f"/?missing={'n' * 60}&lang=en"),
    ],
)
def test_an_address_that_is_no_page_leads_to_one(base, path, there):
    answer = Answer(base + path, query="lang=en")
    assert (answer.status, answer.headers["location"]) == (307, base + there)


def test_other_methods_ranges_and_a_base_that_is_not_there_are_streamlits(base):
    assert Answer(f"{base}/", method="POST").is_streamlits
    assert Answer(f"{base}/static/js/{SCRIPT}", range="bytes=0-1").is_streamlits
    if base:
        assert all(
            Answer(path).is_streamlits for path in ("/", "/masks", base, f"{base}x/masks", f"/static/js/{SCRIPT}")
        )


def test_every_page_has_streamlits_page_and_its_scripts_come_along(base):
    own = (STATIC / "index.html").read_text(encoding="utf-8")
    for url in ("masks", *PAGES):
        answer = Answer(f"{base}/{url}")
        assert answer.status == 200
        assert NO_PICTURE in answer.body
        assert answer.headers["cache-control"] == "private, no-cache"
    answer = Answer(f"{base}/masks", query="slide=on")  # which has no bar
    assert PICTURE not in answer.body
    text = answer.body.decode()
    loaded = re.findall(r'<link rel="modulepreload" crossorigin href="\./([^"]+)">', text)
    assert len(set(loaded)) == len(loaded) > own.count("modulepreload")
    assert all((STATIC / name).is_file() for name in loaded)
    assert any("BidiComponent" in name for name in loaded)
    own_without, ours_without = (
        re.sub(
            r'<link rel="modulepreload"[^>]*>|<title>.*?</title>|<script data.*</style>|\s', "", one, flags=re.DOTALL
        )
        for one in (own, text)
    )
    assert ours_without == own_without


def test_a_link_without_parameters_begins_with_the_picture_in_the_readers_language(base):
    english, chinese = Answer(f"{base}/", accept_language="en-GB,zh;q=0.5"), Answer(f"{base}/", accept_language="zh-CN")
    other = Answer(f"{base}/", accept_language="fr")
    for answer in (english, chinese, other):
        assert answer.body.index(b'<div id="root"></div>') < answer.body.index(PICTURE)
    assert b'lang="zh-CN"' in chinese.body
    assert english.body != chinese.body
    assert english.body == other.body == Answer(f"{base}/").body
    assert english.headers["etag"] != chinese.headers["etag"]
    assert Answer(f"{base}/", accept_language="zh-CN", if_none_match=chinese.headers["etag"]).status == 304
    for query in ("text=<script>alert(1)</script>", "lang=zh", "lang=<b>", "%", "x" * 200_000):
        said = Answer(f"{base}/", query=query).body
        assert NO_PICTURE in said
        assert b"alert(1)" not in said
        assert (b'lang="zh-CN"' in said) == (query == "lang=zh")
    packed = Answer(f"{base}/", accept_encoding="gzip, br", accept_language="zh-CN")
    assert gzip.decompress(packed.body) == chinese.body
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["etag"] != chinese.headers["etag"]
    assert len(packed.body) < 37_000


@pytest.mark.parametrize("accepted", ["", ",", ";;;", "*", "x" * 100_000, "zh" * 60, "\x00", "en;q=abc"])
def test_whatever_a_browser_says_of_its_languages_there_is_a_page(accepted):
    assert first_files.preferred(accepted) in LANGUAGES


@pytest.mark.sweep
def test_a_thousand_readers_of_the_first_page_are_kept_nothing_for():
    before = len(first_files._indexes)
    for number in range(1000):
        assert Answer("/", accept_language=f"en-{number}", query=f"x={number}" if number % 2 else "").status == 200
    assert len(first_files._indexes) <= before + 4


def test_the_script_may_run_and_a_text_of_the_picture_cannot_end_its_place(monkeypatch):
    text = Answer("/").body.decode()
    inline = re.findall(r"<script(?: data-[^>]*)?>(.*?)</script>", text, re.DOTALL)
    assert len(inline) == 6  # Streamlit's, what mends that, and that of the picture
    assert {inline_scripts.hashed(one) for one in inline} <= set(inline_scripts.hashes())
    assert len(inline_scripts.hashes()) == len(inline_scripts.NAMES) + 2
    monkeypatch.setitem(first_picture._made, "en", json.dumps({"note": "</script><script>alert(1)</script>"}))
    assert "alert(1)</script>" not in Answer("/").body.decode()
    assert "\\u003c/script>" in Answer("/").body.decode()


def test_without_a_picture_the_page_has_its_title(monkeypatch, tmp_path):
    first_picture._kept.cache_clear()
    monkeypatch.setattr(first_picture, "kept", lambda language: tmp_path / "none.json")
    assert NO_PICTURE in Answer("/").body
    first_picture._kept.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_picture_that_comes_with_the_program_is_that_of_the_page(language):
    """If this fails: python tools/first_picture.py"""
    kept, made = (
        json.loads(text) for text in (first_picture.kept(language).read_text(encoding="utf-8"), tool.made(language))
    )
    assert kept.keys() == made.keys()
    assert kept["types"] == made["types"]
    for name in ("lanes", "words", "written", "look"):
        assert kept[name] == made[name]  # (of the other numbers the last digits depend on the processor)


def test_a_server_that_cannot_open_its_first_page_says_so_in_its_log_and_goes_on(monkeypatch, caplog):
    def broken() -> None:
        raise OSError("the model is not there")

    monkeypatch.setattr(page_frame, "load", broken)
    asyncio.run(server.visit())
    assert "could not be opened" in caplog.text


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/", ""),
        ("/attention", ""),
        ("/masks", "slide=on"),
    ],
)
def test_the_frame_is_there_before_anything_is_drawn_and_the_browser_knows_the_server(path, query):
    answer = Answer(path, query=query)
    text = answer.body.decode()
    style = asset("app.css").read_text(encoding="utf-8")
    assert text.count(f"<style>{style}</style>") == 1
    host = json.loads(html.unescape(re.search(r'<script data-host="([^"]*)">', text)[1]))
    assert host == {"allowedOrigins": st.get_option("client.allowedOrigins"), "useExternalAuthToken": False}
    cookie = answer.headers["set-cookie"]
    token, _ = decode_xsrf_token_string(re.match(r"_streamlit_xsrf=([^;]+)", cookie)[1])
    again = Answer(path, query=query, cookie=cookie.partition(";")[0], if_none_match=answer.headers["etag"])
    assert again.status == 304
    assert decode_xsrf_token_string(re.match(r"_streamlit_xsrf=([^;]+)", again.headers["set-cookie"])[1])[0] == token
