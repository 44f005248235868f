"""What heads do over a few short texts, with the spread, and what taking one out costs."""

import math

import numpy as np
import pytest
import torch

from recipes.handmade_models import induction_by_hand
from tests import tiny
from tests.bundled import load
from vizformer.analysis.causes.ablation import Part, edit_without, without
from vizformer.analysis.corpus_heads import bundled_corpus, habits
from vizformer.analysis.corpus_heads.corpus import Passage
from vizformer.analysis.corpus_heads.habits import TARGETS, Habits, answer, cost, shares_of, short_texts, way_of
from vizformer.analysis.corpus_heads.one_text import is_delimiter
from vizformer.analysis.heads.maps import kinds, site_name
from vizformer.checkpoints import Checkpoint
from vizformer.text import IdTokenizer

NONE = math.nan


def of_texts(checkpoint, texts):
    kind = kinds(checkpoint.trace(texts[0]))[0]
    traces = [checkpoint.trace(text) for text in texts]
    return Habits(np.stack([shares_of(trace, kind, trace.tokens[kind]) for trace in traces]))


def test_heads_that_were_made_by_hand_have_the_habits_that_they_were_made_for() -> None:
    found = of_texts(induction_by_hand(), ["abcdabcd", "bcadbcadbcad", "cdabcdab"])
    before, induction = found.of(0, 1), found.of(1, 2)
    assert before.target == "previous"
    assert before.low > 0.99
    assert induction.target == "induction"
    assert induction.low > 0.99
    assert (before, induction) == tuple(one for one in found.strongest() if one.mean > 0.9)


@pytest.mark.parametrize(
    ("model", "text"), [("stories", "The cat, the dog and the cat, she said."), ("cloze", "A cat, a cat, a dog.")]
)
def test_a_share_is_the_mean_of_what_the_rows_give_that_have_such_a_token(model, text) -> None:
    trace = load(model).trace(text)
    kind = kinds(trace)[0]
    tokens = trace.tokens[kind]
    ids, last = [token.id for token in tokens], len(tokens) - 1
    found = shares_of(trace, kind, tokens)
    sees = np.tri(len(ids), dtype=bool) if kind == "decoder" else np.ones((len(ids), len(ids)), dtype=bool)
    wanted = {
        "previous": lambda i: [i - 1] if i else [],
        "diagonal": lambda i: [i] if sees[i].sum() > 1 else [],
        "next": lambda i: [i + 1] if i < last and sees[i, i + 1] else [],
        "delimiter": lambda i: [j for j in range(1, last) if sees[i, j] and is_delimiter(tokens[j])],
        "duplicate_token": lambda i: [j for j in range(i) if ids[j] == ids[i]],
        "induction": lambda i: [j for j in range(1, i) if ids[j - 1] == ids[i]],
        "rest": lambda i: [0, last],
    }
    for layer, head in ((0, 1), (1, 3)):
        pattern = trace[site_name(kind, layer)].pattern(head).numpy()
        for at, target in enumerate(TARGETS):
            rows = [sum(pattern[i, j] for j in wanted[target](i)) for i in range(len(ids)) if wanted[target](i)]
            if target == "next" and kind == "decoder":
                assert rows == []
                assert math.isnan(found[at, layer, head])
                continue
            assert rows
            assert found[at, layer, head] == pytest.approx(np.mean(rows), abs=1e-5), target


def test_a_text_that_says_nothing_of_a_habit_does_not_count() -> None:
    shares = np.zeros((3, len(TARGETS), 1, 4))
    previous, duplicate, rest = (TARGETS.index(name) for name in ("previous", "duplicate_token", "rest"))
    shares[:, previous, 0, :2] = [[0.5, 0.9], [0.7, 0.8], [0.6, 0.7]]
    shares[:, duplicate, 0, 2] = [NONE, 0.3, 0.5]
    shares[:, duplicate, 0, [0, 1, 3]] = NONE
    shares[:, rest, 0, 3] = [0.4, 0.4, 0.4]
    found = Habits(shares)
    one = found.of(0, 2)
    assert (one.target, one.mean, one.low, one.high) == ("duplicate_token", pytest.approx(0.4), 0.3, 0.5)
    before = found.of(0, 1)
    assert (before.mean, before.low, before.high) == (pytest.approx(0.8), 0.7, 0.9)
    assert found.strongest() == (before, one)  # one of each kind, and none that rests
    assert found.resting == 1
    shares[:, duplicate, 0, 2] = 0.29  # too little
    assert Habits(shares).strongest() == (before,)


def test_the_texts_are_short_and_keep_their_end_mark() -> None:
    cloze = load("cloze")
    texts = short_texts(cloze, bundled_corpus("en").passages)
    assert len(texts) == habits.TEXTS
    assert all(2 < len(tokens) <= habits.MOST_TOKENS for tokens in texts)
    long = short_texts(cloze, [Passage("The cat and the dog. " * 40)])
    assert len(long[0]) == habits.MOST_TOKENS
    assert long[0][-1].id == cloze.encode("a")[-1].id
    assert long[0][-1].special


def test_a_vocabulary_that_does_not_have_the_words_reads_no_text() -> None:
    assert short_texts(load("induction-by-hand"), bundled_corpus("en").passages) == ()
    without_tokenizer = Checkpoint("ids", tiny.model("decoder-only"), IdTokenizer(29))
    assert short_texts(without_tokenizer, bundled_corpus("en").passages) == ()


@pytest.mark.parametrize(
    ("model", "way"),
    [("stories", "next"), ("cloze", "masked"), ("zh-en", None)],
)
def test_what_a_head_is_held_against_follows_from_what_the_model_predicts(model, way) -> None:
    assert way_of(load(model)) == way
    assert way_of(tiny.checkpoint("encoder-only")) == "vector"  # no [MASK]: nothing to predict


def costs(checkpoint, texts, kind, layer, head, way, pooling="mean"):
    edit = edit_without([Part(site_name(kind, layer), head)])
    both = [[answer(checkpoint, tokens, way, pooling, edit=one) for one in (None, edit)] for tokens in texts]
    return [cost(way, whole, less) for whole, less in both]


@pytest.mark.parametrize(
    ("architecture", "way", "more"),
    [("decoder-only", "next", {}), ("encoder-only", "masked", tiny.BERT), ("encoder-only", "vector", {})],
)
def test_a_head_that_writes_nothing_costs_nothing(architecture, way, more) -> None:
    checkpoint = tiny.checkpoint(architecture, **more)
    kind = architecture.partition("-")[0]
    stack = getattr(checkpoint.model, kind)
    width = stack.layers[1].self_attention.d_head
    with torch.no_grad():
        stack.layers[1].self_attention.W_O.weight[:, width : 2 * width] = 0.0
    texts = [
        checkpoint.encode(text) for text in ("I have a cat, and she has two dogs.", "cats and dogs are here, and we")
    ]
    assert costs(checkpoint, texts, kind, 1, 1, way) == [0.0, 0.0]
    assert all(one != 0.0 for one in costs(checkpoint, texts, kind, 1, 0, way))


def test_the_cost_is_the_change_of_the_loss_without_the_head() -> None:
    checkpoint = load("stories")
    trace = checkpoint.trace("Once upon a time there was a cat.")
    tokens = trace.tokens["decoder"]
    less = without(checkpoint, trace, [Part("decoder.2.self", 1)])
    right = torch.tensor([token.id for token in tokens[1:]])
    losses = [torch.nn.functional.cross_entropy(one.logits[:-1].double(), right) for one in (trace, less)]
    assert costs(checkpoint, [tokens], "decoder", 2, 1, "next") == [
        pytest.approx(float(losses[1] - losses[0]), abs=1e-9)
    ]
    plain = answer(checkpoint, tokens, "next", plain=trace)  # the same forward, done already
    assert torch.equal(plain, answer(checkpoint, tokens, "next"))


def test_of_a_masked_model_hidden_tokens_are_predicted() -> None:
    checkpoint = load("cloze")
    tokens = checkpoint.encode("The cat sat on the mat and looked at the dog for a while.")
    words = [at for at, token in enumerate(tokens) if not token.special]
    hidden = words[3::7]
    ids = [checkpoint.model.config.mask_id if at in hidden else token.id for at, token in enumerate(tokens)]
    logits = checkpoint.trace(ids=ids).logits.double()
    expected = [-float(logits[at].log_softmax(-1)[tokens[at].id]) for at in hidden]
    assert answer(checkpoint, tokens, "masked").tolist() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("pooling", "of"),
    [
        ("mean", lambda x: x.mean(0)),
        ("cls", lambda x: x[0]),
        ("max", lambda x: x.max(0).values),
        ("mean_sqrt_len", lambda x: x.sum(0) / len(x) ** 0.5),
    ],
)
def test_of_a_model_of_sentences_the_pooled_vector_turns(pooling, of) -> None:
    checkpoint = tiny.checkpoint("encoder-only")
    trace = checkpoint.trace("I have a cat.")
    less = without(checkpoint, trace, [Part("encoder.0.self", 1)])
    u, v = (of(one.residual("encoder.final").double()) for one in (trace, less))
    found = costs(checkpoint, [trace.tokens["encoder"]], "encoder", 0, 1, "vector", pooling)
    assert found == [pytest.approx(1 - float(u @ v / u.norm() / v.norm()), abs=1e-9)]
