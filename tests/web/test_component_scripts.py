"""The scripts of the components at addresses of their own: messages hold a few lines, a browser fetches the rest once."""

import gzip
import json

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from vizformer.components import _mount
from vizformer.web.frame import component_scripts

LONGEST = 1_500  # characters of a component's script in a message


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=component_scripts.routes()))


def test_a_message_holds_no_script_that_is_long_and_its_address_has_it_all(client: TestClient) -> None:
    assert {"attention", "whole_model", "whole_model_picture", "memory"} <= component_scripts.known().keys()
    for component in component_scripts.known().values():
        script, style = component_scripts.instead(component)
        if script == component.script:
            assert len(script) + len(style) <= component_scripts.SMALL
            continue
        assert (len(script) < LONGEST, style) == (True, "")
        [address] = [line.split("`")[1] for line in script.splitlines() if "import(" in line]
        found = client.get(address.removeprefix("${location.origin}"))
        assert found.status_code == 200
        assert "immutable" in found.headers["cache-control"]
        assert found.headers["content-encoding"] == "gzip"
        assert found.headers["content-type"].startswith("text/javascript")
        whole, __, sheet = found.text.rpartition("\nexport const sheet = ")
        assert whole == component.script
        assert json.loads(sheet.strip().removesuffix(";")) == component.style


def test_a_browser_that_does_not_unpack_gets_it_as_it_is(client: TestClient) -> None:
    component = component_scripts.known()["attention"]
    address = f"/{component_scripts.PLACE}/attention.{component_scripts._stamp(component)}.js"
    found = client.get(address, headers={"Accept-Encoding": "identity"})
    assert found.headers["content-encoding"] == "identity"
    assert gzip.decompress(component_scripts._packed(component)) == found.content


def test_a_script_of_another_version_is_not_kept_and_one_that_there_is_not_is_not_found(client: TestClient) -> None:
    found = client.get(f"/{component_scripts.PLACE}/attention.0123456789abcdef.js")
    assert (found.status_code, found.headers["cache-control"]) == (200, "no-store")
    assert component_scripts.known()["attention"].script in found.text
    for name in ("nothing.0123456789abcdef.js", "attention.js", "..%2fapp.py"):
        assert client.get(f"/{component_scripts.PLACE}/{name}").status_code == 404


def test_outside_of_the_app_a_message_holds_all_of_it() -> None:
    component = component_scripts.known()["attention"]
    assert _mount._itself(component) == (component.script, component.style)
