"""The pages that take scores and positions apart, with models whose scores compare contents with distances."""

import pytest

from tests.pages.reading import opens_well
from tests.parity.test_encoder_families import written
from vizformer.web.catalogue import server_folder

PLACES = [
    ("pages/learn/start.py", ""),
    ("pages/learn/map.py", ""),
    ("pages/learn/tokens.py", "norms"),
    ("pages/learn/heads.py", "groups"),
    ("pages/learn/qkv.py", "arithmetic"),
    ("pages/learn/layer.py", ""),
    ("pages/explore/attention.py", ""),
    ("pages/explore/lens.py", ""),
    ("pages/checkpoint/report.py", ""),
]


@pytest.fixture(autouse=True)
def shelf(tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    written("deberta", tmp_path / "v1")
    written("deberta-v2", tmp_path / "v3")
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "locale"), [("v1", "zh-CN"), ("v3", "en-US")])
def test_pages_open(open_app, model, locale):
    link = {"model": f"models/{model}", "text": "I have a cat and two dogs"}
    app = open_app("pages/explore/attention.py", locale=locale, **link)
    for page, part in PLACES:
        opens_well(app, page, **link, part=part, layer=1, head=1, query=1)
