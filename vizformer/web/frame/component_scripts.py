"""The scripts of the components at addresses of their own, which browsers keep.

Streamlit puts the script and the style sheet of a component into each message that shows it: up to 110 KB in every run.
Here the message has a few lines instead (assets/served.js), which fetch both from an address that says what they are.
"""

import gzip
import hashlib
import importlib
import json
import pkgutil
from functools import cache

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vizformer import components
from vizformer.assets import asset
from vizformer.components import _mount
from vizformer.web.frame import head_routes

PLACE = "vizformer-scripts"  # the first part of the addresses' path
SMALL = 4_000  # characters up to which a message holds all of it: to fetch it would take longer
LASTING = "public, max-age=31536000, immutable"


def serve() -> None:
    """Makes messages hold the addresses of scripts instead of their text from now on."""
    _mount.send_instead(instead)


def instead(component: _mount.Component) -> tuple[str, str]:
    """Script and style sheet as a message holds them."""
    if len(component.script) + len(component.style) <= SMALL:
        return component.script, component.style
    name = f"{component.entry}.{_stamp(component)}.js"
    return asset("served.js").read_text(encoding="utf-8").replace("ADDRESS", f"{head_routes.base()}/{PLACE}/{name}"), ""


def routes() -> list[Route]:
    return [Route(f"{head_routes.base()}/{PLACE}/{{entry}}.{{stamp}}.js", _script)]


@cache
def known() -> dict[str, _mount.Component]:
    """All components by their entries, also those that no page of this process has shown: another worker may have."""
    for module in pkgutil.iter_modules(components.__path__):
        importlib.import_module(f"{components.__name__}.{module.name}")
    return _mount.KNOWN


async def _script(request: Request) -> Response:
    """The script; one of another version, which a browser asks for while replicas are replaced, is this one's own."""
    component = known().get(request.path_params["entry"])
    if component is None:
        return Response(status_code=404, headers={"Cache-Control": "no-store"})
    is_same = request.path_params["stamp"] == _stamp(component)
    headers = {"Cache-Control": LASTING if is_same else "no-store", "Vary": "Accept-Encoding"}
    content = _content(component)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers, content = {**headers, "Content-Encoding": "gzip"}, _packed(component)
    else:
        headers["Content-Encoding"] = "identity"
    return Response(content, headers=headers, media_type="text/javascript")


@cache
def _content(component: _mount.Component) -> bytes:
    return f"{component.script}\nexport const sheet = {json.dumps(component.style)};\n".encode()


@cache
def _packed(component: _mount.Component) -> bytes:
    return gzip.compress(_content(component), 6, mtime=0)


@cache
def _stamp(component: _mount.Component) -> str:
    return hashlib.sha256(_content(component)).hexdigest()[:16]
