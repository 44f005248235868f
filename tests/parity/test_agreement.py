"""The badge of Model report: agreement with recorded code is measured, and a difference is seen."""

import pytest
import torch

from tests.checkpoints import folders as made
from tests.pages.conftest import compare, open_app  # noqa: F401  (fixtures)
from tests.parity.test_encoder_families import written
from vizformer.checkpoints import load
from vizformer.checkpoints.agreement_check import agreement
from vizformer.errors import CheckpointError
from vizformer.web.catalogue import model_cache, server_folder

pytest.importorskip("transformers")
TEXT = "I have two dogs"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("agreement")
    made.llama(root / "llama")
    made.bert(root / "headless", model="BertModel")
    made.marian(root / "marian")
    return root


@pytest.mark.parametrize("name", ["llama", "headless", "marian"])
def test_a_folder_agrees_with_transformers(root, name):
    found = agreement(load(root / name), root / name, TEXT)
    assert found.holds
    assert (found.logits is None) == (name == "headless")
    assert 0 < found.largest <= 1e-5


def test_a_difference_is_seen(root):
    opened = load(root / "llama")
    with torch.no_grad():
        opened.model.decoder.layers[1].self_attention.W_Q.weight[0, 0] += 0.5
    found = agreement(opened, root / "llama", TEXT)
    assert not found.holds
    assert found.maps > 1e-5


def test_what_transformers_cannot_open_is_said(root):
    with pytest.raises(CheckpointError, match="Hugging Face layout"):
        agreement(load("zh-en"), root / "llama", "我有一只猫。")
    with pytest.raises(CheckpointError, match="lacks"):
        agreement(load(root / "llama"), root / "nothing", TEXT)


def test_maps_of_other_sizes_are_not_compared(tmp_path):
    """Longformer's code attends in chunks."""
    folder = written("longformer", tmp_path)
    with pytest.raises(CheckpointError, match="no attention map of these tokens"):
        agreement(load(folder), folder, TEXT)


@pytest.mark.parametrize(("locale", "said"), [("en-US", "The same numbers as transformers"), ("zh-CN", "的数值一致")])
def test_the_badge_on_the_page(root, monkeypatch, open_app, compare, locale, said):  # noqa: F811
    monkeypatch.setenv(server_folder.VARIABLE, str(root))
    model_cache.agreement.clear()
    app = open_app("pages/checkpoint/report.py", locale=locale, model="models/llama", text=TEXT)
    assert not app.exception
    assert not any(said in box.value for box in app.success)
    app = compare(app)
    assert not app.exception
    assert any(said in box.value for box in app.success)
