"""The answers of docs/why.md: each number is measured again, each address leads to a part of the app."""

import re
from pathlib import Path

import numpy as np
import pytest

from vizformer.analysis import positions
from vizformer.analysis.decoding.ways import growth
from vizformer.analysis.heads.pronouns import reference_shift
from vizformer.checkpoints import load
from vizformer.explain.attention_numbers import head_numbers
from vizformer.web.link.languages import SOURCE
from vizformer.web.widgets.map_words import PAIRS
from vizformer.web.words import lesson_words

TEXT = re.sub(r"\s+", " ", (Path(__file__).parents[1] / "docs" / "why.md").read_text(encoding="utf-8"))
SENTENCE = "I have a cat."


def scaled() -> list[str]:
    d = load("zh-en").model.config.d_head
    q, k = np.random.default_rng(0).standard_normal((2, 20_000, d))
    spread = (q * k).sum(1).std()
    return [f"vectors of {d} numbers", f"**{spread:.1f}**, and divided by √{d} it is **{spread / d**0.5:.1f}**"]


def three() -> list[str]:
    checkpoint = load("zh-en")
    trace = checkpoint.trace(SENTENCE)
    x = head_numbers(checkpoint, trace, "encoder.1.self", 0, 0).all.source
    own = int(((x @ x.T).argmax(1) == np.arange(len(x))).sum())
    heads = [(layer, head) for layer in range(3) for head in range(4)]
    patterns = np.stack([trace[f"encoder.{layer}.self"].pattern(head).numpy() for layer, head in heads])
    found = int((patterns.argmax(-1) == np.arange(len(x))).sum())
    return [f"**{own} of {len(x)}** rows", f"**{found} of {patterns[..., 0].size}** rows of the twelve heads"]


def mask() -> list[str]:
    stories, text = load("stories"), "Once upon a time there was a cat"
    before = stories.trace(text)
    ids = [token.id for token in before.tokens["decoder"]]
    after = stories.trace(ids=[*ids[:-1], ids[-1] + 1])
    changed = int((before.logits != after.logits).any(-1).sum())
    return [f"{text}*, {len(ids)} tokens", f"**{changed} of {len(ids)}** positions"]


def order() -> list[str]:
    checkpoint = load("zh-en")
    ids, vocab = [token.id for token in checkpoint.encode(SENTENCE)], checkpoint.model.config.input_vocab_size
    turned = positions.other_order(len(ids), "reverse", 0)
    kept = {
        scheme: positions.shuffle(positions.small_model(scheme, vocab, causal=False), ids, turned).n_unmoved
        for scheme in ("none", "sinusoidal")
    }
    n = len(ids)
    return [f"**{kept['none']} of {n}** tokens keep", f"paper **{kept['sinusoidal']} of {n}** do"]


def cache() -> list[str]:
    without, kept = growth(load("zh-en").model.config, 50)
    return [f"**{without[0].sum() / kept[0].sum():.1f}** times"]


def reference() -> list[str]:
    found = reference_shift(load("zh-en").trace, PAIRS["it"])
    n = 2 * len(found.sentences)
    return [f"In {n} sentences", f"the best of the {found.shifts[0].size} heads", f"**{found.found} of {n}**"]


@pytest.mark.parametrize("measured", [scaled, three, mask, order, cache, reference])
def test_each_number_is_measured_again(measured) -> None:
    for said in measured():
        assert said in TEXT, said


def test_every_number_in_bold_is_one_of_these() -> None:
    said = " ".join(phrase for measured in (scaled, three, mask, order, cache, reference) for phrase in measured())
    assert sorted(re.findall(r"\*\*[^*]+\*\*", TEXT)) == sorted(re.findall(r"\*\*[^*]+\*\*", said))


def test_each_answer_leads_to_a_part() -> None:
    found = re.findall(r"`/(\w+)\?part=(\w+)`", TEXT)
    assert len(found) == TEXT.count(" ## ") == 6
    for lesson, part in found:
        assert part in lesson_words.parts(lesson, SOURCE)
