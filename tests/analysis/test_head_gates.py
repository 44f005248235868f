"""Learned gates: the circuit built by hand is found among its noise, and the loss is that of plain forwards."""

import random

import numpy as np
import pytest
import torch

from recipes.handmade_models import INDUCTION, PREVIOUS_TOKEN, induction_by_hand
from tests import tiny
from tests.bundled import load
from vizformer.analysis.causes.ablation import Part, without
from vizformer.analysis.causes.head_gates import MOST_TOKENS, ROLES, HeadGates, _batches, fit_gates, runs, table_of
from vizformer.analysis.causes.other_texts import read_repeated_tokens
from vizformer.analysis.heads.induction import repeatable
from vizformer.errors import TraceError

KINDS_OF_MODEL = {
    "translator": dict(architecture="encoder-decoder"),
    "LLaMA": dict(architecture="decoder-only", **tiny.LLAMA),
    "shared keys": dict(architecture="decoder-only", **tiny.SHARED_KEYS),
    "Gemma 4": dict(architecture="decoder-only", **tiny.GEMMA4),
    "small Gemma 4": dict(architecture="decoder-only", **tiny.GEMMA4_SMALL),
    "Gemma 4 with experts": dict(architecture="decoder-only", **tiny.GEMMA4_EXPERTS),
    "Gemma 3n": dict(architecture="decoder-only", **tiny.GEMMA3N),
    "short Gemma 3n": dict(architecture="decoder-only", **tiny.GEMMA3N_SHORT),
    "BERT": dict(architecture="encoder-only", **tiny.BERT),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_two_heads_built_by_hand_facilitate_and_the_noise_is_irrelevant(seed: int) -> None:
    checkpoint = load("induction-by-hand") if seed == 0 else induction_by_hand(seed)
    texts, prompts = read_repeated_tokens(checkpoint, 8)  # of letters
    found = fit_gates(checkpoint, texts, prompts=prompts, seeds=(0, 1), steps=30)
    works = {Part(f"decoder.{layer}.self", head) for layer, head in (PREVIOUS_TOKEN, INDUCTION)}
    for part, role in zip(found.heads, found.roles(), strict=True):
        assert role == ("facilitating" if part in works else "irrelevant"), part
    real = np.array([part in works for part in found.heads])
    assert found.closed[:, real].min() > 0.35  # pushed shut, and still open, with every seed
    assert found.closed[:, ~real].max() < 0.1
    assert found.opened.min() > 0.9
    assert found.without[real].min() > 1.0
    assert np.abs(found.without[~real]).max() < 0.05
    assert found.loss < 0.05
    assert found.loss_opened.max() < 0.05
    for role in ROLES:
        assert found.scores(role).shape == (2, len(found.heads))


@pytest.mark.sweep
def test_a_head_of_which_a_part_is_enough_is_not_called_irrelevant() -> None:
    """Scores are multiplied by 32, so that a gate of less than a half leaves the softmax what it is."""
    checkpoint = load("induction-by-hand")
    texts, prompts = read_repeated_tokens(checkpoint, 8)
    found = fit_gates(checkpoint, texts, prompts=prompts, seeds=(0,), steps=60, push=0.1)
    at = found.heads.index(Part(f"decoder.{INDUCTION[0]}.self", INDUCTION[1]))
    assert found.scores("irrelevant")[0, at] > 0.5  # by the gates alone
    assert found.without[at] > 3.0
    assert found.at_closed[at] < 0.5  # saturated
    assert found.roles()[at] is None
    assert found.roles().count("irrelevant") == 6
    assert np.isnan(table_of(found, "irrelevant", "decoder")[INDUCTION])


@pytest.mark.sweep
def test_a_circuit_that_says_what_is_wrong_interferes() -> None:
    """On letters that do not repeat their order it is sure of what does not come; to shut one of its two heads is enough."""
    checkpoint, draw = load("induction-by-hand"), random.Random(1)
    texts = [checkpoint.trace(" ".join(draw.choices("abcd", k=16))) for _ in range(8)]
    found = fit_gates(checkpoint, texts, prompts=[6] * 8, seeds=(0,), steps=30)
    roles = dict(zip(found.heads, found.roles(), strict=True))
    assert "interfering" in {roles[Part(f"decoder.{layer}.self", head)] for layer, head in (PREVIOUS_TOKEN, INDUCTION)}
    assert found.loss_opened[0] < found.loss - 1


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(1)
def test_the_loss_and_its_rise_are_those_of_plain_forwards(name: str) -> None:
    """Texts of different lengths stand in one batch, filled up."""
    checkpoint = tiny.checkpoint(**KINDS_OF_MODEL[name])
    both = name == "translator"
    targets = ([1, 7, 9, 4], [1, 5])
    texts = [
        checkpoint.trace(ids=ids, **(dict(target_ids=target) if both else {}))
        for ids, target in zip(([5, 6, 7, 8], [9, 4, 8, 7, 5, 6]), targets, strict=True)
    ]
    told = list[tuple[int, int]]()
    found = fit_gates(checkpoint, texts, seeds=(3,), steps=2, heard=lambda *heard: told.append(heard))
    assert told[-1] == (len(told), runs(len(found.heads), 1, 2))
    assert told[-1][0] == told[-1][1]
    again = fit_gates(checkpoint, texts, seeds=(3,), steps=2)
    np.testing.assert_array_equal(again.opened, found.opened)
    assert np.isfinite([*found.opened.ravel(), *found.closed.ravel(), found.loss]).all()
    assert (found.opened != found.closed).any()
    if name == "BERT":  # (asked for what is masked, which is drawn)
        return

    def loss(runs) -> float:
        sums = []
        for run in runs:
            ids = [token.id for token in run.tokens["decoder"]]
            log_p = run.logits.double().log_softmax(-1)
            sums += [-float(log_p[i, following]) for i, following in enumerate(ids[1:])]
        return float(np.mean(sums))

    assert found.loss == pytest.approx(loss(texts), abs=1e-5)
    part = Part("decoder.1.self", 2)
    expected = loss([without(checkpoint, text, [part]) for text in texts]) - loss(texts)
    assert found.without[found.heads.index(part)] == pytest.approx(expected, abs=1e-5)


def test_the_marks_of_an_encoder_are_never_asked() -> None:
    """[CLS], [SEP] and [MASK] stand in its texts and are not guessed; neither is what only fills up a batch."""
    checkpoint = load("cloze")
    texts = [checkpoint.trace("The cat sat on the [MASK]."), checkpoint.trace("A dog.")]
    (batch,) = _batches(checkpoint, texts, None)
    assert batch.asked.any(1).all()
    for row, text in enumerate(texts):
        tokens = text.tokens["encoder"]
        marks = [at for at, token in enumerate(tokens) if token.special]
        assert len(marks) > 1
        others = [at for at in range(len(tokens)) if at not in marks]
        assert batch.asked[row, others].all()
        assert not batch.asked[row, marks].any()
        assert not batch.asked[row, len(tokens) :].any()


def test_a_text_that_is_cut_keeps_the_end_mark_of_its_encoder() -> None:
    checkpoint = load("cloze")
    text = checkpoint.trace("a cat " * 40)
    (batch,) = _batches(checkpoint, [text], None)
    ids = [token.id for token in text.tokens["encoder"]]
    assert len(ids) > MOST_TOKENS
    assert batch.ids[0][0].tolist() == [*ids[: MOST_TOKENS - 1], ids[-1]]
    assert not batch.asked[0, -1]
    translator = load("zh-en")
    text = translator.trace("我有一只猫。" * 20, target="a cat " * 40)
    (batch,) = _batches(translator, [text], None)
    assert batch.ids[0][0, -1] == text.tokens["encoder"][-1].id == translator.model.config.eos_id
    assert batch.ids[1][0].tolist() == [token.id for token in text.tokens["decoder"][:MOST_TOKENS]]


def test_roles_follow_from_both_fits() -> None:
    heads = tuple(Part("decoder.0.self", head) for head in range(3))
    opened, closed = np.array([[0.9, 0.1, 0.9]]), np.array([[0.8, 0.05, 0.1]])
    losses = (np.zeros(3), np.zeros(1), np.zeros(1))
    found = HeadGates(heads, opened, closed, 0.01, 1.0, np.zeros(3), *losses)
    assert found.roles() == ("facilitating", "interfering", "irrelevant")
    for rise, head in ((-0.02, 0), (0.02, 1), (-0.02, 2), (0.02, 2)):  # each against what the gates say of one head
        other = HeadGates(heads, opened, closed, 0.01, 1.0, np.eye(3)[head] * rise, *losses)
        assert [at for at, role in enumerate(other.roles()) if role is None] == [head]
    assert sum(found.scores(role)[0, 2] for role in ROLES) == pytest.approx(0.1 + 0.1 + 0.81)


def test_what_gates_cannot_be_learned_on_is_refused_and_weights_stay() -> None:
    checkpoint = tiny.checkpoint(**KINDS_OF_MODEL["LLaMA"])
    for texts in ([], [checkpoint.trace(ids=[5])]):
        with pytest.raises(TraceError, match="no text"):
            fit_gates(checkpoint, texts)
    text = checkpoint.trace(ids=[5, 6, 7])
    for push in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(TraceError, match="above 0"):
            fit_gates(checkpoint, [text], push=push)
    bare = tiny.checkpoint(architecture="encoder-only")
    if bare.model.config.mask_id is None:
        with pytest.raises(TraceError, match="mask token"):
            fit_gates(bare, [bare.trace(ids=[5, 6])])

    def stop(done: int, of: int) -> None:
        raise InterruptedError

    before = {name: tensor.clone() for name, tensor in checkpoint.model.state_dict().items()}
    with pytest.raises(InterruptedError):
        fit_gates(checkpoint, [text], heard=stop)
    fit_gates(checkpoint, [text], seeds=(0,), steps=1)
    assert all(torch.equal(tensor, before[name]) for name, tensor in checkpoint.model.state_dict().items())


def test_repeated_tokens_are_told_by_how_many_cannot_be_known() -> None:
    texts, prompts = read_repeated_tokens(load("stories"), 3, period=5)
    for text, prompt in zip(texts, prompts, strict=True):
        ids = [token.id for token in text.tokens["decoder"]]
        assert len(ids) == 11
        assert ids[1:6] == ids[6:]
        assert prompt == 7
    with pytest.raises(TraceError, match="without an encoder"):
        read_repeated_tokens(load("zh-en"), 3)


def test_repeated_tokens_are_as_many_as_the_positions_hold() -> None:
    short = tiny.checkpoint("decoder-only", max_positions=12)  # a start mark, and 5 tokens twice
    texts, prompts = read_repeated_tokens(short, 2)
    assert [len(text.tokens["decoder"]) for text in texts] == [11, 11]
    assert prompts == [7, 7]
    candidates, period = repeatable(short.model.config.vocab_size, short.tokenizer, 12, 8)
    assert period == 6
    assert not any(short.tokenizer.is_special(int(id)) for id in candidates)
    for positions in (1, 2, 4):
        with pytest.raises(TraceError, match="reads too few tokens for any of them to come twice"):
            read_repeated_tokens(tiny.checkpoint("decoder-only", max_positions=positions), 2)
    assert [
        len(text.tokens["decoder"])
        for text in read_repeated_tokens(tiny.checkpoint("decoder-only", max_positions=5), 1)[0]
    ] == [5]
