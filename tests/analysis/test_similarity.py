"""How alike two texts are: against torch, and every way of taking the cosine apart sums to it."""

import json

import numpy as np
import pytest
import torch

from tests import tiny
from vizformer.analysis import similarity_terms, text_similarity, two_runs
from vizformer.checkpoints.hugging_face.sentence_vectors import sentence_pooling
from vizformer.errors import CheckpointError

IDS, OTHER_IDS = [30, 31, 32, 33, 34], [30, 41, 42]
OPTIONS = {
    "post": {"norm_order": "post"},
    "pre": {"norm_order": "pre"},
    "rms": {"norm": "rms_norm", "norm_order": "pre"},
    "sandwich": {"norm_order": "sandwich"},
    "gated, rope": {"feedforward": "gated", "positions": "rope"},
    "segments": {"n_segments": 2, "embedding_norm": True},
}


def runs_of(name="post"):
    checkpoint = tiny.checkpoint("encoder-only", vocab_size=320, **OPTIONS[name])
    return two_runs(checkpoint, checkpoint.trace(ids=IDS), checkpoint, checkpoint.trace(ids=OTHER_IDS))


def rows(runs):
    return [trace.residual("encoder.final").double() for trace in (runs.trace, runs.other)]


@pytest.mark.parametrize(
    ("pooling", "pooled"),
    [
        ("mean", lambda x: x.mean(0)),
        ("cls", lambda x: x[0]),
        ("max", lambda x: x.max(0).values),
        ("mean_sqrt_len", lambda x: x.sum(0) / len(x) ** 0.5),
    ],
)
def test_the_cosine_is_that_of_torch_and_the_sum_of_its_pairs_and_parts(pooling, pooled):
    runs = runs_of()
    found = text_similarity(runs, pooling)
    u, v = (pooled(x) for x in rows(runs))
    assert found.cosine == pytest.approx(float(torch.cosine_similarity(u, v, dim=0)), abs=1e-9)
    assert found.lengths == pytest.approx((float(u.norm()), float(v.norm())))
    assert found.pairs.shape == (5, 3)
    assert found.pairs.sum() == pytest.approx(found.cosine, abs=1e-12)
    assert found.proof.holds
    for second in (False, True):
        parts = similarity_terms(runs, pooling, second=second)
        assert sum(term.value for term in parts.terms) == pytest.approx(found.cosine, abs=1e-6)
        assert parts.proof.holds


def test_a_pair_is_the_product_of_its_two_rows():
    runs = runs_of()
    found, (x, y) = text_similarity(runs, "mean"), rows(runs)
    size = found.lengths[0] * found.lengths[1] * 15
    assert found.pairs[3, 1] == pytest.approx(float(x[3] @ y[1]) / size, abs=1e-9)
    first = text_similarity(runs, "cls").pairs
    assert np.count_nonzero(first) == 1
    assert first[0, 0] != 0


@pytest.mark.parametrize("name", OPTIONS)
def test_the_terms_sum_to_the_cosine_in_every_model(name):
    runs = runs_of(name)
    found, parts = text_similarity(runs), similarity_terms(runs)
    assert sum(term.value for term in parts.terms) == pytest.approx(found.cosine, abs=1e-6)
    assert parts.proof.holds
    heads = [(term.layer, term.head) for term in parts.terms if term.part == "head"]
    config = runs.first.model.config
    assert heads == [(layer, head) for layer in range(config.n_encoder_layers) for head in range(config.n_heads)]


def test_a_head_of_the_last_layer_is_what_its_output_gives_to_the_sum():
    """Pre-norm without a last norm: what a head writes is in the last row as it is."""
    checkpoint = tiny.checkpoint("encoder-only", vocab_size=320, norm_order="pre", final_norm=False)
    runs = two_runs(checkpoint, checkpoint.trace(ids=IDS), checkpoint, checkpoint.trace(ids=OTHER_IDS))
    v = rows(runs)[1].mean(0)
    record, attention = runs.trace["encoder.1.self"], checkpoint.model.encoder.layers[1].self_attention
    width = attention.d_head
    written = record.z(1).double() @ attention.W_O.weight.detach().double()[:, width : 2 * width].T
    expected = float(written.mean(0) @ v) / np.prod(text_similarity(runs).lengths)
    term = next(t for t in similarity_terms(runs).terms if t.part == "head" and (t.layer, t.head) == (1, 1))
    assert term.value == pytest.approx(expected, abs=1e-9)


def pooled_folder(tmp_path, said, modules=None):
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(said), encoding="utf-8")
    if modules is not None:
        (tmp_path / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    return tmp_path


def test_what_the_files_say_of_pooling(tmp_path):
    assert sentence_pooling(tmp_path) is None
    said = {"word_embedding_dimension": 8, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    modules = [{"type": f"sentence_transformers.models.{name}"} for name in ("Transformer", "Pooling", "Normalize")]
    assert sentence_pooling(pooled_folder(tmp_path, said, modules)) == "cls"


@pytest.mark.parametrize(
    ("said", "modules", "words"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, None, "supported here is one of"),
        ({"pooling_mode_lasttoken": True}, None, "pooling_mode_lasttoken; supported here is one of"),
        ({}, None, "supported here is one of"),
        (
            {"pooling_mode_mean_tokens": True},
            [{"type": "sentence_transformers.models.Dense"}],
            r"models\.Dense\" after",
        ),
        ([], None, "holds .* where an object with fields belongs"),
    ],
)
def test_what_is_not_computed_is_said(said, modules, words, tmp_path):
    with pytest.raises(CheckpointError, match=words):
        sentence_pooling(pooled_folder(tmp_path, said, modules))


def test_what_lies_in_the_cache_of_a_hub_is_read_through_its_links(tmp_path):
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "abc"
    blobs.mkdir()
    (snapshot / "1_Pooling").mkdir(parents=True)
    (blobs / "one").write_text(json.dumps({"pooling_mode_cls_token": True}), encoding="utf-8")
    (snapshot / "1_Pooling" / "config.json").symlink_to(blobs / "one")
    assert sentence_pooling(snapshot) == "cls"
    (tmp_path / "secret").write_text(json.dumps({"pooling_mode_cls_token": True}), encoding="utf-8")
    (snapshot / "1_Pooling" / "config.json").unlink()
    (snapshot / "1_Pooling" / "config.json").symlink_to(tmp_path / "secret")
    with pytest.raises(CheckpointError, match="leads out of"):
        sentence_pooling(snapshot)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_terms_of_half_precision_sum_as_closely_as_it_allows(dtype):
    checkpoint = tiny.checkpoint("encoder-only", vocab_size=320)
    checkpoint.model.to(getattr(torch, dtype))
    runs = two_runs(checkpoint, checkpoint.trace(ids=IDS), checkpoint, checkpoint.trace(ids=OTHER_IDS))
    assert text_similarity(runs).proof.holds
    assert similarity_terms(runs).proof.holds


def test_a_link_that_leads_out_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "model").mkdir()
    pooled_folder(outside, {"pooling_mode_mean_tokens": True})
    (tmp_path / "model" / "1_Pooling").symlink_to(outside / "1_Pooling")
    assert sentence_pooling(tmp_path / "model") is None
