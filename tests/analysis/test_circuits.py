"""Circuits from the weights: against whole matrices, against the forward, and against heads that were set by hand."""

import numpy as np
import pytest
import torch

from recipes.handmade_models import (
    INDUCTION,
    LETTERS,
    PREVIOUS_TOKEN,
    WORKING,
    induction_by_hand,
    task_by_hand,
)
from tests import tiny
from tests.bundled import load
from vizformer.analysis.circuits import (
    composition,
    compositions,
    copying_scores,
    eigenvalues,
    head_weights,
    ov_pairs,
    qk_pairs,
    token_scores,
    what_is_left_out,
)
from vizformer.analysis.circuits.weights import embedding, unembedding
from vizformer.errors import TraceError

MODELS = {
    "llama": ("decoder-only", tiny.LLAMA),
    "geglu": ("decoder-only", {**tiny.GEGLU, "positions": "none"}),
    "gpt": ("decoder-only", {"norm_order": "pre", "final_norm": True, "positions": "none", "attention_bias": "none"}),
    "bert": ("encoder-only", {"positions": "none", "attention_bias": "none"}),
}


VOCABULARY = 64  # small: most tests compare every pair of tokens


def made(name):
    architecture, options = MODELS[name]
    return tiny.checkpoint(architecture, vocab_size=VOCABULARY, **options)


def factor(norm, x):
    """What the norm divides a row by."""
    if norm is None:
        return 1.0
    centred = x - x.mean() if isinstance(norm, torch.nn.LayerNorm) else x
    return float(torch.sqrt(centred.square().mean() + norm.eps))


def without_biases(checkpoint):
    """The norms' own, which circuits leave out."""
    for module in checkpoint.model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.bias.zero_()
    return checkpoint


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("distance", [0, 1, 3])
@pytest.mark.sample(4)
def test_the_scores_of_two_tokens_are_those_of_the_forward(name, distance):
    scores_are_those_of_the_forward(without_biases(made(name)), 3, 3 - distance)


def test_a_later_key_is_turned_the_other_way():
    encoder = {"norm_order": "pre", "final_norm": True, "positions": "rope", "attention_bias": "none"}
    checkpoint = without_biases(tiny.checkpoint("encoder-only", vocab_size=VOCABULARY, **encoder))
    scores_are_those_of_the_forward(checkpoint, 1, 3)
    best = qk_pairs(checkpoint, 0, 1, count=1, distance=-2)[0]
    assert token_scores(checkpoint, "qk", 0, 1, best.row, -2)[best.column] == pytest.approx(best.value, rel=1e-5)
    assert token_scores(checkpoint, "qk", 0, 1, best.row, 2)[best.column] != pytest.approx(best.value, rel=1e-3)


def scores_are_those_of_the_forward(checkpoint, i, j):
    stack = "encoder" if checkpoint.model.decoder is None else "decoder"
    block = getattr(checkpoint.model, stack).layers[0]
    norm = block.self_norm if block.norm_order == "pre" else None
    ids = [30, 31, 32, 33]
    trace = checkpoint.trace(ids=ids)
    x = trace.residual(f"{stack}.0.pre").double()
    for head in range(4):
        found = {(pair.row, pair.column): pair.value for pair in qk_pairs(checkpoint, 0, head, VOCABULARY**2, i - j)}
        score = float(trace[f"{stack}.0.self"].content_scores(head)[i, j])
        expected = score * factor(norm, x[i]) * factor(norm, x[j])
        assert found[ids[i], ids[j]] == pytest.approx(expected, abs=2e-4)


def test_the_norms_of_queries_and_keys_are_folded_in_but_for_their_division():
    checkpoint = tiny.checkpoint("decoder-only", vocab_size=VOCABULARY, **tiny.QWEN3)
    block = checkpoint.model.decoder.layers[0]
    attention, ids = block.self_attention, [30, 31, 32]
    trace = checkpoint.trace(ids=ids)
    x = trace.residual("decoder.0.pre")
    d_head, head, i, j = attention.d_head, 3, 2, 1
    q = attention.W_Q(block.self_norm(x))[i, head * d_head : (head + 1) * d_head].double()
    k = attention.W_K(block.self_norm(x))[j, d_head : 2 * d_head].double()  # the second of two groups
    both = factor(block.self_norm, x[i].double()) * factor(block.self_norm, x[j].double())
    both *= factor(attention.q_norm, q) * factor(attention.k_norm, k)
    found = {(pair.row, pair.column): pair.value for pair in qk_pairs(checkpoint, 0, head, VOCABULARY**2, 1)}
    score = float(trace["decoder.0.self"].content_scores(head)[i, j])
    assert found[ids[i], ids[j]] == pytest.approx(score * both, rel=1e-4)


@pytest.mark.parametrize("name", ["llama", "geglu", "gpt"])
def test_what_a_head_says_is_what_it_adds_to_the_logits(name):
    checkpoint = without_biases(made(name))
    stack = checkpoint.model.decoder
    norm = stack.layers[0].self_norm
    for token in (30, 45):
        trace = checkpoint.trace(ids=[token])  # alone: it attends to itself, with weight 1
        x = trace.residual("decoder.0.pre").double()[0]
        for head in range(4):
            own = head_weights(checkpoint, "decoder", 0, head)
            written = trace["decoder.0.self"].z(head)[0].double() @ own.W_O
            expected = written * factor(norm, x) @ unembedding(checkpoint)
            found = embedding(checkpoint)[token] @ own.W_V @ own.W_O @ unembedding(checkpoint)
            assert torch.allclose(found, expected, atol=1e-4)
            pairs = ov_pairs(checkpoint, 0, head, VOCABULARY**2)
            row = {pair.column: pair.value for pair in pairs if pair.row == token}
            assert row[7] == pytest.approx(float(found[7]), abs=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_eigenvalues_and_copying_scores_are_those_of_the_whole_matrix(name):
    checkpoint = made(name)
    stack = "encoder" if checkpoint.model.decoder is None else "decoder"
    scores = copying_scores(checkpoint)
    for layer, head in np.ndindex(2, 4):
        own = head_weights(checkpoint, stack, layer, head)
        whole = (embedding(checkpoint) @ own.W_V @ own.W_O @ unembedding(checkpoint)).numpy()
        expected = np.linalg.eigvals(whole)
        expected = expected[np.argsort(-np.abs(expected))][: own.W_V.shape[1]]
        found = eigenvalues(checkpoint, layer, head)
        assert (np.diff(np.abs(found)) <= 1e-9).all()  # the largest first, whatever its direction
        assert np.allclose(np.sort_complex(found.round(8)), np.sort_complex(expected.round(8)), atol=1e-6)
        assert scores[layer, head] == pytest.approx(expected.sum().real / np.abs(expected).sum(), abs=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_the_largest_pairs_are_those_of_the_whole_matrix(name, monkeypatch):
    monkeypatch.setattr("vizformer.analysis.circuits.token_circuits._ROWS", 50)
    checkpoint = made(name)
    stack = "encoder" if checkpoint.model.decoder is None else "decoder"
    own = head_weights(checkpoint, stack, 1, 2)
    whole = embedding(checkpoint) @ own.W_V @ own.W_O @ unembedding(checkpoint)
    best = whole.flatten().argsort(descending=True)[:5]
    expected = [(int(at) // VOCABULARY, int(at) % VOCABULARY) for at in best]
    assert [(pair.row, pair.column) for pair in ov_pairs(checkpoint, 1, 2, 5)] == expected


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.sample(1)
def test_compositions_are_norms_of_the_whole_products(name):
    checkpoint = made(name)
    stack = "encoder" if checkpoint.model.decoder is None else "decoder"
    found = compositions(checkpoint)
    for a, b in np.ndindex(8, 8):
        first, second = (head_weights(checkpoint, stack, *divmod(one, 4)) for one in (a, b))
        writes, reads = first.W_V @ first.W_O, second.W_Q @ second.W_K.T
        for way, matrix in (("Q", reads), ("K", reads.T), ("V", second.W_V @ second.W_O)):
            if second.layer <= first.layer:
                assert np.isnan(found.scores[way][a, b])
                continue
            expected = (writes @ matrix).norm() / (writes.norm() * matrix.norm())
            assert found.scores[way][a, b] == pytest.approx(float(expected), rel=1e-9)


def test_random_heads_stand_at_the_baseline():
    checkpoint = tiny.checkpoint("decoder-only", vocab_size=VOCABULARY, d_model=64, n_heads=4, norm_order="pre")
    found = compositions(checkpoint)
    scores = np.concatenate([one[np.isfinite(one)] for one in found.scores.values()])
    assert np.sqrt((scores**2).mean()) == pytest.approx(found.mean, rel=0.05)
    assert found.mean == 64**-0.5
    for way in "QKV":
        assert not found.clear(way)


def turned(count, d_model, rank):
    """Random frames of `rank` directions."""
    generator = torch.Generator().manual_seed(0)
    return torch.linalg.qr(torch.randn(count, d_model, rank, generator=generator, dtype=torch.float64)).Q


@pytest.mark.sample(1)
@pytest.mark.parametrize("strength", [[1.0], [1.0] * 6, [0.9] + [0.02] * 5, [2.0**-i for i in range(6)]])
def test_chance_has_the_moments_of_matrices_that_are_turned_at_random_and_bounds_their_tail(strength):
    d_model, count = 32, 40_000
    shares = composition.shares(torch.tensor(strength, dtype=torch.float64))
    frames = turned(2 * count, d_model, len(strength))
    g = (frames[:count].mT @ frames[count:]).square()
    t = (shares[:, None] * g * shares).sum((1, 2))
    assert float(t.mean()) == pytest.approx(1 / d_model, rel=0.03)  # 40,000 draws: a hundredth
    deviation = composition.chance_deviation(shares, shares, d_model)
    assert float(t.std()) == pytest.approx(float(deviation), rel=0.05)
    every = shares.expand(count, -1)
    found = composition.probability(t, every, every, d_model)
    for level in (0.1, 0.01, 1e-3):
        assert float((found < level).double().mean()) <= level
    least = float(found.min())  # and it falls: of many draws the most unlikely one is called so
    assert least < 0.02


def spiked(share, seed=0):
    """A model whose heads have few strong directions, of which the strongest of all have a `share` of one in common."""
    checkpoint = tiny.checkpoint("decoder-only", vocab_size=320, d_model=64, n_heads=4, n_decoder_layers=4)
    generator = torch.Generator().manual_seed(seed)
    common = torch.randn(64, generator=generator)
    for block in checkpoint.model.decoder.layers:
        attention = block.self_attention
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            weight = getattr(attention, name).weight
            for head in range(4):
                rows = torch.randn(16, 64, generator=generator) * (2.0 ** -torch.arange(16))[:, None]
                rows[0] += share * common
                part = slice(16 * head, 16 * head + 16)
                if name == "W_O":
                    weight[:, part] = rows.T
                else:
                    weight[part] = rows
    return checkpoint


def test_heads_of_few_strong_directions_do_not_compose_by_chance():
    for seed in range(3):
        found = compositions(spiked(0.0, seed))
        assert not any(found.clear(way) for way in "QKV")
        # though they stand far above random heads whose directions are all alike, as which they were judged before
        alike = np.concatenate([one[np.isfinite(one)] for one in found.scores.values()])
        assert alike.max() > found.mean + 10 * 0.002


def test_a_direction_that_all_heads_share_is_no_composition():
    found = compositions(spiked(2.0))
    many = [int(found.unlikely(found.chance[way]).sum()) for way in "QKV"]
    assert max(many) > 20
    for way in "QKV":
        assert len(found.clear(way)) <= 0.1 * max(many)


@pytest.mark.sweep
def test_few_of_the_pairs_of_a_trained_model_stand_out():
    """Of 1,920; against random matrices without the spectra of the true ones it were 555."""
    found = compositions(load("stories"))
    assert found.tests == 1920
    clear = {way: found.clear(way) for way in "QKV"}
    assert {way: len(pairs) for way, pairs in clear.items()} == {"Q": 2, "K": 29, "V": 4}
    for way, pairs in clear.items():
        excess, by_chance = found.decoys[way]
        false = (excess >= min(pair[2] for pair in pairs)) & found.unlikely(by_chance)
        assert false.sum() <= 0.05 * len(pairs)


@pytest.fixture(scope="module", params=[0, 1, 2])
def judge(request):
    return induction_by_hand(seed=request.param)


@pytest.mark.sample(1)
def test_the_two_heads_compose_and_no_random_one_does(judge):
    found = compositions(judge)
    assert [(first, second) for first, second, __ in found.clear("K")] == [(PREVIOUS_TOKEN, INDUCTION)]
    assert not found.clear("Q")
    assert not found.clear("V")


def test_the_induction_head_copies_and_no_random_one_does(judge):
    scores = copying_scores(judge)
    assert scores[INDUCTION] > 0.99
    assert not np.nan_to_num(scores[PREVIOUS_TOKEN]) > 0.5  # what it writes is not read by the logits
    scores[INDUCTION] = 0
    assert np.nanmax(np.abs(scores)) < 0.7
    letters = {judge.tokenizer.id_of(letter) for letter in LETTERS}
    pairs = ov_pairs(judge, *INDUCTION, count=27)
    assert {pair.row for pair in pairs} == letters | {judge.tokenizer.id_of("<unk>")}
    assert all(pair.row == pair.column for pair in pairs)


def test_the_head_that_copies_or_reverses_copies_by_its_weights():
    for task in ("copy", "reverse"):
        scores = copying_scores(task_by_hand(task))
        assert scores[WORKING] > 0.99
        scores[WORKING] = 0
        assert np.nanmax(np.abs(scores)) < 0.7


def test_what_is_not_exact_is_said():
    llama = " ".join(map(str, what_is_left_out(made("llama"))))
    assert "turn queries and keys" in llama
    assert "folded into the matrices" in llama
    assert "normalises after every sum" in " ".join(map(str, what_is_left_out(made("bert"))))
    with pytest.raises(TraceError, match="no head 9"):
        head_weights(made("llama"), "decoder", 0, 9)
    with pytest.raises(TraceError, match="no self-attention of this kind"):
        head_weights(made("llama"), "encoder", 0, 0)


@pytest.mark.parametrize("name", MODELS)
def test_the_row_of_a_token_is_that_of_the_whole_circuit(name: str) -> None:
    architecture, options = MODELS[name]
    checkpoint = tiny.checkpoint(architecture, **options)
    own, rows = head_weights(checkpoint, f"{architecture[:7]}", 1, 1), embedding(checkpoint)  # type: ignore[arg-type]
    looks = rows @ own.W_Q @ own.W_K.T @ rows.T * own.scale
    says = rows @ own.W_V @ own.W_O @ unembedding(checkpoint)
    np.testing.assert_allclose(token_scores(checkpoint, "qk", 1, 1, 7), looks[7], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(token_scores(checkpoint, "ov", 1, 1, 7), says[7], rtol=1e-9, atol=1e-12)
    with pytest.raises(TraceError):
        token_scores(checkpoint, "ov", 1, 1, checkpoint.model.config.vocab_size)


def test_the_row_of_a_token_is_turned_by_its_distance() -> None:
    checkpoint = load("stories")
    best = qk_pairs(checkpoint, 2, 1, count=1, distance=3)[0]
    assert token_scores(checkpoint, "qk", 2, 1, best.row, 3)[best.column] == pytest.approx(best.value, rel=1e-5)
    assert token_scores(checkpoint, "qk", 2, 1, best.row, 9)[best.column] != pytest.approx(best.value, rel=1e-5)
