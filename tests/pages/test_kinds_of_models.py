"""Every page with every kind of model: a bundled one, a converted one, and recorded code, each with one stack or two.

What `docs/reference.md` says of a page is what is there: a picture, or the sentence why not, with the bundled model to use
instead.
"""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests import recorded_models
from tests.checkpoints import folders
from tests.pages.conftest import Open
from tests.recorded_code import named
from tools.reference import BY_WEIGHTS, RECORDED
from vizformer.checkpoints import own_code
from vizformer.web.catalogue import server_folder
from vizformer.web.frame import sitemap

FILE = Path(recorded_models.__file__)
BUNDLED = {"decoder": "stories", "encoder": "cloze", "translator": "zh-en"}
CONVERTED = {"decoder": folders.llama, "encoder": folders.bert, "translator": folders.t5}
SENTENCE = "which is known of models that VizFormer computes itself"
OTHERS = {"generation": ("encoder",), "blanks": ("decoder", "translator")}  # which such a page offers another model for
MASKED = ("blanks", "lens", "what_if")  # pages that ask for a word in the place of [MASK]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    for name, write in CONVERTED.items():
        write(root / name)
    return root


def opened(open_app: Open, kind: str, stacks: str, url: str, locale: str = "en-US", **more: object) -> AppTest:
    text = "I have two dogs"
    if stacks == "encoder" and url in MASKED and kind != "converted":
        text = "I have [MASK] dogs"
    if stacks == "translator" and locale == "zh-CN":
        text = "我有一只猫。"
    model = {"bundled": BUNDLED[stacks], "converted": f"models/{stacks}", "recorded": f"code/recorded_models.{stacks}"}[
        kind
    ]
    target = {"target": "a cat"} if stacks == "translator" else {}
    return open_app(sitemap.PAGES[url].file, locale=locale, model=model, text=text, **target, **more)


def pictures(app: AppTest) -> int:
    drawn = ("bidi_component", "plotly_chart", "html", "dataframe", "image", "arrow_data_frame", "imgs")
    return sum(len(app.get(name)) for name in drawn)


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("url", [url for url in sitemap.PAGES if url in RECORDED])
@pytest.mark.parametrize("stacks", BUNDLED)
@pytest.mark.parametrize("kind", ["bundled", "converted", "recorded"])
@pytest.mark.sample(24)
def test_a_page_shows_its_picture_or_says_why_not(
    open_app: Open, shelf: Path, monkeypatch: pytest.MonkeyPatch, kind: str, stacks: str, url: str, locale: str
) -> None:
    monkeypatch.setenv(server_folder.VARIABLE, str(shelf))
    with named(monkeypatch):
        monkeypatch.setenv(own_code.VARIABLE, f"{FILE}:{stacks}")
        app = opened(open_app, kind, stacks, url, locale)
        assert not app.exception
        assert not app.error, [one.value for one in app.error]
        offers = {one.key: one for one in app.button if str(one.key).startswith("instead.")}
        assert set(offers) <= ({f"instead.{BUNDLED[stacks]}"} if kind == "recorded" else set())
        if kind == "recorded" and RECORDED[url] == BY_WEIGHTS:
            assert offers
            assert locale != "en-US" or any(SENTENCE in one.value for one in app.info)
            app = next(iter(offers.values())).click().run()
            assert not app.exception
            model = app.query_params.get("model", BUNDLED[stacks])  # (a link that names none means zh-en)
            assert model in (BUNDLED[stacks], [BUNDLED[stacks]])
            assert not any(SENTENCE in one.value for one in app.info)
        elif stacks in OTHERS.get(url, ()):
            assert pictures(app) or any(".use." in str(one.key) for one in app.button)
        else:
            assert pictures(app)


def test_the_table_has_every_page_that_shows_a_model() -> None:
    others = {"glossary", "paper", "explore", "teach", "worksheet", "train", "models", "elsewhere"}
    assert set(sitemap.PAGES) - set(RECORDED) == others
