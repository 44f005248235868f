"""The recipe of the recurrent model: its arithmetic, its rows, a tiny training that is interrupted and goes on."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from recipes import gru
from recipes.batches import Row, row_batches
from recipes.corpus import Corpus
from recipes.gru import GRURecipe
from recipes.pairs import Pair
from tests import tiny
from vizformer.assets import asset
from vizformer.training.loss import IGNORED
from vizformer.training.repeater import GRULanguageModel, load_gru

RECIPE = GRURecipe(d_x=6, d_h=10, context=12, epochs=2, rate=2e-2, warmup=2, tokens_per_batch=64)


def corpus() -> Corpus:
    pairs = [Pair("我有一只猫。", "I have a cat."), Pair("你好吗？", "How are you?")]
    return Corpus({"book": ["The cats are here. " * 4]}, ["She has two dogs."], [], ["How are you?"], pairs, pairs[:1])


def rows(count: int = 40) -> list[Row]:
    """A row counts up: the next token follows from this one."""
    return [gru.next_token_row([3 + (i + j) % 8 for j in range(9)]) for i in range(count)]


def test_a_step_is_the_formula_of_the_docstring() -> None:
    torch.manual_seed(0)
    model = tiny.randomise(GRULanguageModel(11, 4, 5))
    ids = [2, 7, 1]
    weights = dict(model.gru.named_parameters())
    h = torch.zeros(5)
    for token in ids:
        a = weights["weight_ih_l0"] @ model.embedding.weight[token] + weights["bias_ih_l0"]
        b = weights["weight_hh_l0"] @ h + weights["bias_hh_l0"]
        (ar, au, ac), (br, bu, bc) = a.split(5), b.split(5)
        r, u = torch.sigmoid(ar + br), torch.sigmoid(au + bu)
        h = (1 - u) * torch.tanh(ac + r * bc) + u * h
    states = model(torch.tensor([ids]))
    tiny.assert_close(states[0, -1], h)
    logits = model.embedding.weight @ (model.projection.weight @ h + model.projection.bias)
    tiny.assert_close(model.logits(states)[0, -1], logits)


def test_every_token_of_a_text_is_asked_for_once() -> None:
    tokenizer = tiny.tokenizer()
    (ids,) = tokenizer.encode_ids(["The cats are here. " * 4 + "\n"])
    found = gru._paragraphs(tokenizer, ["The cats are here. " * 4], 12)
    assert len(found) > 1
    assert [label for row in found for label in row.labels] == ids[1:]
    assert all(row.ids[0] == ids[0] and len(row.ids) <= 12 for row in found)
    both = gru.training_rows(corpus(), tokenizer, 30), gru.held_out_rows(corpus(), tokenizer, 30)
    chinese = [gru._sentences(tokenizer, [text], 30)[0] for text in ("我有一只猫。", "你好吗？")]
    assert [both[0].count(row) for row in chinese] == [gru.CHINESE_TIMES] * 2
    assert both[1]["chinese"] == chinese[:1]
    assert both[1]["book"] != []


def test_padding_does_not_count() -> None:
    model = tiny.randomise(GRULanguageModel(20, 4, 5)).eval()
    long, short = gru.next_token_row([1, 5, 6, 7, 8, 9]), gru.next_token_row([1, 5, 2])
    together = next(row_batches([long, short], tokens_per_batch=99, pad_id=0, seed=None))
    assert bool(together.labels.eq(IGNORED).any())
    total, count = gru.row_loss(model, together, reduction="sum")
    apart = [
        gru.row_loss(model, batch, reduction="sum")
        for row in (long, short)
        for batch in row_batches([row], tokens_per_batch=99, pad_id=0, seed=None)
    ]
    assert count == sum(n for _, n in apart) == 7
    assert total.item() == pytest.approx(sum(loss.item() for loss, _ in apart), rel=1e-5)


@pytest.mark.sweep
def test_training_learns_goes_on_after_a_stop_and_comes_back_from_its_file(tmp_path: Path) -> None:
    said: list[str] = []
    work = [tmp_path / "whole.pt", tmp_path / "parts.pt"]
    whole, notes = gru.train_gru(RECIPE, rows(), {"some": rows(3)}, 20, 0, work[0], said.append)
    assert notes["epoch"] == 2
    assert notes["held_out"]["some"] < math.log(20)
    assert notes["step"] == 2 * len(list(row_batches(rows(), tokens_per_batch=64, pad_id=0, seed=0)))

    class StopError(Exception):
        pass

    def stop(line: str) -> None:
        raise StopError

    with pytest.raises(StopError):  # it says so once the first epoch's state is on the disk
        gru.train_gru(RECIPE, rows(), {"some": rows(3)}, 20, 0, work[1], stop)
    resumed, again = gru.train_gru(RECIPE, rows(), {"some": rows(3)}, 20, 0, work[1], said.append)
    assert again["held_out"] == notes["held_out"]
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name]), name


def test_the_learning_rate_rises_and_falls() -> None:
    rates = [gru.learning_rate(step, 100, replace(RECIPE, warmup=10)) for step in range(1, 101)]
    assert max(rates) == pytest.approx(RECIPE.rate, rel=0.03)
    assert rates.index(max(rates)) in (8, 9, 10)
    assert rates[-1] == pytest.approx(0, abs=1e-12)


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    model = tiny.randomise(GRULanguageModel(20, 4, 5))
    notes = dict(
        recipe=dict(d_x=4, d_h=5, context=9, rate=0.1, warmup=3, clip=1.0),
        machine="on paper",
        tokens=7,
        epochs=1,
        steps=2,
        minutes=3.0,
        held_out=dict(chinese=1.25, book=2.5),
    )
    gru.save_gru(model, notes, tmp_path)
    loaded, _ = load_gru(tmp_path)
    ids = torch.tensor([[1, 2, 3]])
    tiny.assert_close(loaded(ids), model(ids), 5e-3)  # float16
    assert "**1.250** on Chinese" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_the_bundled_model_is_small_and_its_card_is_made_from_its_notes() -> None:
    folder = asset("lessons", "map")
    assert (folder / "gru.safetensors").stat().st_size < 1.5e6
    notes = json.loads((folder / "gru.json").read_text(encoding="utf-8"))
    model, tokenizer = load_gru(folder)
    assert model.embedding.num_embeddings == tokenizer.vocab_size
    assert notes["recipe"] == json.loads(json.dumps(GRURecipe().__dict__))
    card = gru._card(model, notes, (folder / "gru.safetensors").stat().st_size)
    assert card == (folder / "README.md").read_text(encoding="utf-8")
