"""The two networks of the lesson "Cross-attention": their arithmetic, a tiny training, and the bundled ones."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from recipes import bottleneck
from recipes.bottleneck import END, RepeatRecipe, random_texts, texts_of
from tests import tiny
from vizformer.assets import asset
from vizformer.training.repeater import (
    MEMORIES,
    START,
    SYMBOLS,
    Memory,
    Repeater,
    as_symbols,
    load_repeater,
    say_again,
    share_right,
)

RECIPE = RepeatRecipe(d_x=8, d_h=12, longest=3, steps=60, batch=16, rate=2e-2, warmup=5, measured=10)
FOLDER = asset("lessons", "cross")


def _repeater(memory: Memory) -> Repeater:
    return Repeater(RECIPE.d_x, RECIPE.d_h, memory)


@pytest.mark.parametrize("memory", MEMORIES)
def test_logits_are_the_formula_of_the_docstring(memory):
    model = tiny.randomise(_repeater(memory))
    texts = texts_of(torch.tensor([[3, 1, 4, 1]]))
    h = model.read(texts.ids)[0]
    logits, _, weights = model.write(texts.fed, h[None])
    s = model.decoder(model.embedding(texts.fed), h[None, None, -1])[0][0]
    a = (s @ model.look.weight.T @ h.T / 12**0.5).softmax(-1)
    z = h[-1].expand_as(s) if memory == "one" else a @ h
    tiny.assert_close(logits[0], torch.cat([s, z], -1) @ model.output.weight.T + model.output.bias)
    tiny.assert_close(weights[0], torch.eye(4)[[3] * 5] if memory == "one" else a)


def test_one_vector_is_all_that_its_decoder_gets():
    model = tiny.randomise(_repeater("one"))
    texts = texts_of(torch.tensor([[3, 1, 4, 1]]))
    states = model.read(texts.ids)
    other = states.clone()
    other[:, :-1] = 0  # what it said on the way there
    assert torch.equal(model.write(texts.fed, states)[0], model.write(texts.fed, other)[0])
    every = tiny.randomise(_repeater("every"))
    assert not torch.equal(every.write(texts.fed, states)[0], every.write(texts.fed, other)[0])


def test_step_by_step_is_the_same_as_all_at_once():
    model = tiny.randomise(_repeater("every")).eval()
    ids = torch.tensor([[3, 1, 4], [1, 5, 9]])
    said, looked = model.repeat(ids, 3)
    fed = torch.cat([torch.full((2, 1), START), said[:, :-1]], 1)
    logits, _, weights = model.write(fed, model.read(ids))
    assert torch.equal(logits.argmax(-1), said)
    tiny.assert_close(weights, looked)


def test_a_text_is_fed_shifted_and_ends():
    texts = texts_of(torch.tensor([[3, 1]]))
    assert (texts.fed.tolist(), texts.asked.tolist()) == ([[START, 3, 1]], [[3, 1, END]])
    ids = random_texts(500, 4, torch.Generator().manual_seed(0)).ids
    assert (ids.min(), ids.max(), ids.shape) == (0, SYMBOLS - 1, (500, 4))


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.sample(1)
def test_training_learns_and_comes_back_from_its_file(tmp_path: Path, memory):
    model, done = bottleneck.train_repeater(RECIPE, memory, lambda line: None)
    untrained, _ = bottleneck.train_repeater(replace(RECIPE, steps=1), memory, lambda line: None)
    texts = random_texts(64, 1, torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert bottleneck.repeat_loss(model, texts) < 0.8 * bottleneck.repeat_loss(untrained, texts)
    assert done["steps"] == 60
    bottleneck.save_repeater(model, tmp_path)
    again = load_repeater(tmp_path, memory)
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor.half().float())


def test_the_two_networks_have_equally_many_parameters():
    assert _repeater("one").n_parameters == _repeater("every").n_parameters


@pytest.mark.parametrize("memory", MEMORIES)
def test_the_bundled_networks_reach_what_is_written_of_them(memory):
    notes = json.loads((FOLDER / "bottleneck.json").read_text(encoding="utf-8"))
    recipe = RepeatRecipe(**notes["recipe"])
    model = load_repeater(FOLDER, memory)
    assert model.n_parameters == notes["parameters"]
    found = bottleneck.measure(model, replace(recipe, longest=9))  # the same texts, as the seed is
    # (other processors round otherwise, which may turn a symbol)
    assert found["right"] == pytest.approx(notes["measured"][memory]["right"][:9], abs=0.01)
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"{notes['measured'][memory]['right'][31]:.1%}" in card


def test_tokens_become_symbols_of_their_own():
    symbols = as_symbols([70, 80, 70, 90])
    assert len(symbols) == 4
    assert symbols[0] == symbols[2]
    assert len(set(symbols)) == 3
    assert all(0 <= symbol < SYMBOLS for symbol in symbols)
    assert as_symbols([70, 80, 70, 90], seed=1) != symbols
    assert len(as_symbols(range(40))) == SYMBOLS
    assert sorted(as_symbols(range(40))) == list(range(SYMBOLS))


def test_a_short_text_is_said_again_and_a_long_one_only_with_a_look_at_every_state():
    one, every = (load_repeater(FOLDER, memory) for memory in MEMORIES)
    long = random_texts(1, 30, torch.Generator().manual_seed(3)).ids[0].tolist()
    assert share_right(say_again(one, long[:2]).symbols, long[:2]) == 1
    assert share_right(say_again(one, long).symbols, long) < 0.5
    found = say_again(every, long)
    assert share_right(found.symbols, long) > 0.9
    assert found.looked.shape == (30, 30)
    assert (found.looked.argmax(-1) == range(30)).mean() > 0.9
