"""A score as a sum over pairs of writers: it sums to the model's own, for every option; shares mean what they say."""

import numpy as np
import pytest
import torch

from recipes.handmade_models import induction_by_hand
from tests import tiny
from tests.analysis.test_logit_lens import MODELS, every_model, traced
from vizformer.analysis import kinds, score_split, site_name, writer_tokens
from vizformer.errors import TraceError
from vizformer.model import Cell, Edit


def sites(trace) -> list[str]:
    return [site_name(kind, layer) for kind in kinds(trace) for layer in range(2)]


def a_split(checkpoint, trace, site, **options):
    return score_split(checkpoint, trace, site, 1, 2, 1, **options)


@pytest.mark.parametrize("against_mean", [False, True])
@every_model
@pytest.mark.sample(20)
def test_the_shares_sum_to_the_score(name, against_mean):
    checkpoint, trace = traced(name)
    for site in sites(trace):
        split = a_split(checkpoint, trace, site, against_mean=against_mean)
        scores = trace[site].scores(1)[2].double().numpy()
        seen = trace[site].reason(1)[2].numpy() == 0
        expected = scores[1] - (scores[seen].mean() if against_mean else 0.0)
        assert split.proof.holds, (site, split.proof)
        assert split.table.sum() + split.position == pytest.approx(expected, abs=1e-5)
        assert split.score == pytest.approx(expected, abs=1e-6)
        assert split.of("query").sum() == pytest.approx(split.of("key").sum())
        assert len({*split.queries}) == len(split.queries)  # each writer stands there once
        assert split.table.shape == (len(split.queries), len(split.keys))


@every_model
@pytest.mark.sample(8)
def test_what_a_head_wrote_comes_token_by_token(name):
    checkpoint, trace = traced(name)
    for site in sites(trace):
        split = a_split(checkpoint, trace, site)
        for side, writers in (("query", split.queries), ("key", split.keys)):
            for index, writer in enumerate(writers):
                if writer.head is None:
                    continue
                found = writer_tokens(checkpoint, trace, split, side, writer)
                assert found.sum() == pytest.approx(split.of(side)[index], abs=1e-6)
                row = split.query if side == "query" else split.key
                assert len(found) == trace[writer.place].k.shape[1]
                blocked = trace[writer.place].reason(writer.head)[row].numpy() > 0
                assert not found[blocked].any()  # nothing comes from a token that it may not see


def test_the_tokens_share_is_its_product_with_the_key():
    """What the first layer of a post-norm model reads is a plain sum: the token's share is its own product with the key."""
    checkpoint = tiny.checkpoint("decoder-only", norm_order="post")
    trace = checkpoint.trace("我有一只猫。")
    site, (i, j) = "decoder.0.self", (2, 1)  # before the first layer: the row is embedding and position alone
    split = score_split(checkpoint, trace, site, 1, i, j)
    assert {writer.part for writer in split.queries} <= {"token", "position", "segment", "projection_bias", "norm_bias"}
    config, table = checkpoint.model.config, checkpoint.model.embedding.weight
    token = table[trace.tokens["decoder"][i].id] * config.embedding_factor
    attention = checkpoint.model.decoder.layers[0].self_attention
    own = slice(attention.d_head, 2 * attention.d_head)
    q = token @ attention.W_Q.weight[own].T
    k = trace[site].k[trace[site].kv_head(1), j]
    at = [writer.part for writer in split.queries].index("token")
    assert split.table[at].sum() == pytest.approx(float(q @ k) * trace[site].scale, abs=1e-5)


def test_the_largest_share_names_the_circuit():
    """In the induction model made by hand, the second head asks by its token and is answered by what the first one wrote."""
    checkpoint = induction_by_hand()
    trace = checkpoint.trace("abcdabc")
    record = trace["decoder.1.self"]
    head = int(np.argmax([float(record.pattern(h)[6].max()) for h in range(record.n_heads)]))
    key = int(record.pattern(head)[6].argmax())
    split = score_split(checkpoint, trace, "decoder.1.self", head, 6, key, against_mean=True)
    asks, answers, share = split.ranked[0]
    assert asks.part == "token"
    assert (answers.part, answers.place) == ("head", "decoder.0.self")
    assert share > 0.9 * split.score
    came = writer_tokens(checkpoint, trace, split, "key", answers)
    assert int(came.argmax()) == key - 1  # it copied the token before


def test_numbers_set_by_hand_are_a_writer():
    edit = Edit((Cell("decoder.0.mid", (2, 3), 2.5),))
    architecture, options = MODELS["pre, tied"]
    checkpoint = tiny.checkpoint(architecture, **options)
    trace = checkpoint.trace("我有一只猫。", edit=edit)
    split = score_split(checkpoint, trace, "decoder.1.self", 1, 2, 1)
    assert split.proof.holds
    assert [writer.place for writer in split.queries if writer.part == "by_hand"] == ["decoder.0.mid"]
    assert not [writer for writer in split.keys if writer.part == "by_hand"]  # row 1 was left as it was


def test_a_wrong_share_would_be_found():
    architecture, options = MODELS["pre, tied"]
    checkpoint = tiny.checkpoint(architecture, **options)
    trace = checkpoint.trace("我有一只猫。")
    with torch.no_grad():
        checkpoint.model.decoder.layers[0].self_attention.W_O.weight[0] += 1.0
    assert not score_split(checkpoint, trace, "decoder.1.self", 1, 2, 1).proof.holds


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["post, tied", "llama", "bert"])
def test_shares_of_half_precision_sum_as_closely_as_it_allows(name, dtype):
    architecture, options = MODELS[name]
    checkpoint = tiny.checkpoint(architecture, **options)
    checkpoint.model.to(dtype)
    trace = checkpoint.trace("我有一只猫。", target="a cat" if architecture == "encoder-decoder" else None)
    for site in sites(trace):
        assert a_split(checkpoint, trace, site).proof.holds, site


def test_what_is_not_there_is_refused():
    checkpoint, trace = traced("pre, tied")
    for wrong in ((99, 0, 0), (0, 99, 0), (0, 0, 99)):
        with pytest.raises(TraceError):
            score_split(checkpoint, trace, "decoder.0.self", *wrong)
    with pytest.raises(TraceError):
        score_split(checkpoint, trace, "decoder.7.self", 0, 0, 0)
    split = a_split(checkpoint, trace, "decoder.1.self")
    token = next(writer for writer in split.queries if writer.part == "token")
    with pytest.raises(TraceError, match="came from tokens"):
        writer_tokens(checkpoint, trace, split, "query", token)
