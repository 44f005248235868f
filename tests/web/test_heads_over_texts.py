"""The quick look at the heads of a model that a reader opened: its language, its bounds, and how it ends."""

import shutil
from types import SimpleNamespace

import pytest

from vizformer.assets import asset
from vizformer.web.catalogue import server_folder, sources, torch_setup
from vizformer.web.catalogue.long_work import hearing
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.attention import one_head
from vizformer.web.pages.attention.one_head import cost, look
from vizformer.web.widgets.model_suggestions import language_of


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A bundled model as a folder of the reader's."""

    def opened(name: str) -> ModelRef:
        folder = tmp_path / name
        if not folder.exists():
            shutil.copytree(asset("models", name), folder)
        monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
        return sources.stamped(ModelRef("models", name))

    for one in (look, cost):
        one.clear()
    return opened


@pytest.mark.parametrize(
    ("model", "kind", "reads"), [("zh-en", "encoder", "zh"), ("induction-by-hand", "decoder", None)]
)
def test_the_texts_are_in_the_language_that_the_model_reads(own, model, kind, reads):
    found = look(own(model), kind)
    assert language_of(own(model)) == reads
    if reads is None:
        assert found == "unreadable"
    else:
        assert {one for tokens in found.texts for token in tokens for one in token.text} & set("的我他你不")


def test_what_takes_long_is_not_measured(own, monkeypatch):
    stories = own("stories")
    monkeypatch.setattr(one_head, "MOST_WORK", 8 * 64 * 1e6)
    monkeypatch.setattr("vizformer.checkpoints.Checkpoint.trace", lambda *_, **__: pytest.fail("it was run"))
    assert look(stories, "decoder") == "large"
    assert cost(stories, "decoder", 0, 0) == ()
    look.clear()


def test_it_waits_while_pages_are_drawn_and_ends_between_two_layers(own, monkeypatch):
    stories, told, waited = own("stories"), [], []
    asked = iter([True, False, False])
    monkeypatch.setattr(one_head, "TURNS", SimpleNamespace(idle=lambda quiet: next(asked, True)))
    monkeypatch.setattr(one_head.time, "sleep", lambda seconds: waited.append(len(told)))
    torch_setup.prepare_torch()

    class LeftError(Exception):
        pass

    def heard(done: int, n: int) -> None:
        told.append((done, n))
        if done == 3:
            raise LeftError

    with pytest.raises(LeftError), hearing(heard):
        look(stories, "decoder")
    assert told == [(0, 1), (1, 5), (2, 5), (3, 5)]  # of the first text
    assert waited == [2, 2]
    assert not look.holds(stories, "decoder")
    found = look(stories, "decoder")
    assert found.heads.shares.shape[0] == len(found.answers) == 8
    told.clear()
    with hearing(lambda done, n: told.append((done, n))):
        assert any(cost(stories, "decoder", 0, 1))
    assert told == [(layer, 5) for layer in range(1, 6)] * 8


def test_a_page_that_is_always_drawn_does_not_hold_it_up_for_ever(own, monkeypatch):
    now = iter(range(10_000))
    monkeypatch.setattr(one_head, "TURNS", SimpleNamespace(idle=lambda quiet: False))
    monkeypatch.setattr(one_head, "time", SimpleNamespace(monotonic=lambda: next(now), sleep=lambda seconds: None))
    with hearing(lambda done, n: None):
        assert look(own("stories"), "decoder") != "large"


def test_the_encoder_of_a_translator_is_looked_at_without_its_decoder(own, monkeypatch):
    translator = own("zh-en")
    monkeypatch.setattr("vizformer.checkpoints.Checkpoint.trace", lambda *_, **__: pytest.fail("it wrote a target"))
    found = look(translator, "encoder")
    assert found.heads.shares.shape == (8, 7, 3, 4)
    assert found.way is None
    assert cost(translator, "encoder", 0, 0) == ()
