"""The sentences of the glossary at an address of their own: a browser asks with the first term that is pointed at."""

import hashlib
import json
from functools import cache

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vizformer.web.frame import head_routes
from vizformer.web.frame.component_scripts import LASTING
from vizformer.web.link.languages import LANGUAGES
from vizformer.web.words.terms import in_letters, read_terms

PLACE = "vizformer-terms"  # the first part of the addresses' path


def address() -> str:
    """The address of the files of terms, without the language and ".json"."""
    stamp = hashlib.sha256(b"".join(map(_content, LANGUAGES))).hexdigest()[:16]
    return f"{head_routes.base()}/{PLACE}/{stamp}/"


def routes() -> list[Route]:
    return [Route(f"{head_routes.base()}/{PLACE}/{{stamp}}/{{tag}}.json", _sentences)]


async def _sentences(request: Request) -> Response:
    code = request.path_params["tag"].replace("-", "_")
    if code not in LANGUAGES:
        return Response(status_code=404, headers={"Cache-Control": "no-store"})
    return Response(_content(code), headers={"Cache-Control": LASTING}, media_type="application/json")


@cache
def _content(code: str) -> bytes:
    """The name and the sentence of each term, by its key."""
    said = {key: [term.name, in_letters(term.text)] for key, term in read_terms(code).items()}
    return json.dumps(said, ensure_ascii=False).encode()
