"""The ten sentences beside the GRU of The map: which they are, and that the bundled numbers are those of the networks."""

import json

import pytest

from recipes.felt_tokens import EACH, LEAST, MOST, measured, sentences
from vizformer.assets import asset
from vizformer.training.repeater import load_gru

BUNDLED = json.loads(asset("lessons", "map", "ten_sentences.json").read_text(encoding="utf-8"))


def test_the_sentences_are_those_that_the_rule_chooses() -> None:
    tokenizer = load_gru(asset("lessons", "map"))[1]
    assert BUNDLED["sentences"] == sentences(tokenizer)
    assert len(BUNDLED["sentences"]) == 2 * EACH
    sizes = [len(tokenizer.encode(text)) for text in BUNDLED["sentences"]]
    assert min(sizes) >= LEAST
    assert max(sizes) <= MOST
    assert [[len(one) for one in BUNDLED[name]] for name in ("gru", "stories")] == [sizes, sizes]


@pytest.mark.parametrize("at", [0, EACH])
def test_the_numbers_are_those_of_the_bundled_networks(at: int) -> None:
    for name, (shares,) in measured(BUNDLED["sentences"][at : at + 1]).items():
        assert shares == pytest.approx(BUNDLED[name][at], abs=2e-4)  # float32 on another processor, rounded to 1e-5
