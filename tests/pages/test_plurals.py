"""One of a thing is not called by its plural: every page with a text of one token, a layer, a head."""

import re

import pytest

from tests.checkpoints import folders as made
from tests.pages.reading import said
from tests.pages.test_every_page import places
from vizformer.web.catalogue import server_folder

NOUNS = (
    "tokens|layers|heads|positions|rows|columns|keys|queries|numbers|texts|words|parts|steps|cells|pairs|symbols|"
    "parameters|bytes|characters|tensors|maps|pieces|places|lines|neurons|questions|choices|others|examples|seeds|"
    "sentences|passages|products|terms|files|models|trainings|updates|pools"
)
ONE = re.compile(rf"(?<![\d.,−·×+/])\b1 ((?:other|different|new|more|own|of its|source|target) )?({NOUNS})\b")


@pytest.fixture(autouse=True)
def one_of_each(tmp_path, monkeypatch):
    made.gpt2(tmp_path / "decoder", n_positions=8, n_layer=1, n_head=1)
    made.bert(tmp_path / "encoder", max_position_embeddings=8, num_hidden_layers=1, num_attention_heads=1)
    made.t5(tmp_path / "both", num_layers=1, num_heads=1)
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))


def words(app) -> str:
    widgets = (*app.selectbox, *app.radio, *app.button_group, *app.button, *app.info, *app.warning)
    labels = [getattr(widget, "label", "") or getattr(widget, "value", "") for widget in widgets]
    options = [str(option) for widget in (*app.selectbox, *app.radio, *app.button_group) for option in widget.options]
    return "\n".join([said(app), *map(str, labels), *options])


@pytest.mark.sweep
@pytest.mark.sample(1)
@pytest.mark.parametrize("model", ["decoder", "encoder", "both"])
def test_one_of_a_thing_is_not_called_by_its_plural(open_app, model):
    app = open_app("pages/explore/attention.py", model=f"models/{model}", text="a")
    wrong = []
    for page, part in places():
        app.switch_page(page)
        for name, value in dict(model=f"models/{model}", text="a", part=part).items():
            app.query_params[name] = value
        app.run()
        assert not app.exception, (page, part)
        lines = [line for line in words(app).splitlines() if ONE.search(line)]
        wrong += [f"{page} {part}: {line}" for line in lines]
    assert not wrong, "\n".join(wrong)
