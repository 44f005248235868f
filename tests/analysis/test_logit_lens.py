"""The logit lens and the terms of a logit: against plain loops, and against the forward."""

import dataclasses
import importlib
from functools import cache

import numpy as np
import pytest
import torch

import vizformer as vf
from recipes.handmade_models import INDUCTION, induction_by_hand
from tests import tiny
from vizformer.analysis import logit_attribution, logit_lens
from vizformer.analysis.attribution.direct import by_key, neurons, what_is_frozen
from vizformer.analysis.attribution.lens import right_tokens, what_is_inexact
from vizformer.analysis.causes.prompt_pairs import prompt_pair
from vizformer.analysis.head_outputs import key_contributions
from vizformer.analysis.one_forward.followed_token import follow_token
from vizformer.analysis.one_forward.predictions import next_tokens
from vizformer.analysis.side_by_side.heads import two_answers
from vizformer.analysis.side_by_side.runs import two_runs
from vizformer.errors import TraceError
from vizformer.model import Cell, Edit

UNTIED = {"tied_unembedding": False}
PRE = {"norm_order": "pre", "final_norm": True}
MODELS = {
    "post, tied": ("encoder-decoder", {}),
    "post, untied": ("decoder-only", {"positions": "learned", **UNTIED}),
    "pre, tied": ("decoder-only", {"positions": "learned", **PRE}),
    "pre, untied": ("encoder-decoder", {**PRE, **UNTIED}),
    "pre without a last norm": ("decoder-only", {"norm_order": "pre", "positions": "learned"}),
    "post with a last norm": ("decoder-only", {"final_norm": True}),
    "no norms": ("decoder-only", {"norm_order": "none"}),
    "no residual": ("encoder-decoder", {"residual": "none"}),
    "encoder, pre": ("encoder-only", PRE),
    "llama": ("decoder-only", tiny.LLAMA),
    "geglu": ("decoder-only", tiny.GEGLU),
    "qwen": ("decoder-only", tiny.QWEN3),
    "turned": ("decoder-only", tiny.ROPE),
    "bert": ("encoder-only", tiny.BERT),
    "marian": ("encoder-decoder", tiny.MARIAN),
    "bart": ("encoder-decoder", tiny.BART),
    "t5": ("encoder-decoder", tiny.T5_1),
}


# Model by model: each is made once, by the process that has its tests.
every_model = pytest.mark.parametrize("name", MODELS, scope="module")


@cache
def traced(name):
    return made(name)


def made(name, **trace):
    architecture, options = MODELS[name]
    checkpoint = tiny.checkpoint(architecture, **options)
    target = "a cat" if architecture == "encoder-decoder" else None
    return checkpoint, checkpoint.trace("我有一只猫。", target=target, **trace)


def stack_of(checkpoint):
    return "encoder" if checkpoint.model.decoder is None else "decoder"


@every_model
@pytest.mark.sample(10)
def test_the_lens_reads_every_layer_through_the_models_own_end(name):
    checkpoint, trace = traced(name)
    model, stack = checkpoint.model, stack_of(checkpoint)
    lens = logit_lens(checkpoint, trace, count=3)
    assert lens.proof.holds
    module = getattr(model, stack)
    for row, point in enumerate(lens.points):
        x = trace.residual(point)
        x = x if module.final_norm is None else module.final_norm(x)
        for column in range(len(trace.logits)):
            logits = model.logits(x[column]).double().numpy()
            p = np.exp(logits - logits.max())
            p /= p.sum()
            if model.config.never_pad:  # has its probability, and is not named
                logits[model.config.pad_id] = -np.inf
            best = np.argsort(-logits, kind="stable")[:3]
            assert lens.top[row, column].tolist() == best.tolist()
            np.testing.assert_allclose(lens.probabilities[row, column], p[best], atol=1e-6)
            assert lens.entropy[row, column] == pytest.approx(-(p[p > 0] * np.log(p[p > 0])).sum(), abs=1e-5)
            target = lens.targets[column]
            assert lens.rank[row, column] == 1 + (logits > logits[target]).sum()
            assert lens.target_probability[row, column] == pytest.approx(p[target], abs=1e-6)
    own = torch.softmax(trace.logits.double(), -1)
    if not model.config.never_pad:
        np.testing.assert_allclose(lens.probabilities[-1, :, 0], own.max(-1).values.numpy(), atol=1e-5)


def test_the_lens_reads_some_positions_a_few_rows_at_a_time(monkeypatch):
    checkpoint, trace = traced("pre, tied")
    whole = logit_lens(checkpoint, trace)
    module = importlib.import_module("vizformer.analysis.attribution.lens")
    monkeypatch.setattr(module, "AT_ONCE", 2 * checkpoint.model.config.vocab_size)
    some = logit_lens(checkpoint, trace, [4, 1], targets=[7, 8])
    assert some.top.tolist() == whole.top[:, [4, 1]].tolist()
    assert some.targets.tolist() == [7, 8]
    np.testing.assert_allclose(some.entropy, whole.entropy[:, [4, 1]], atol=1e-6)


def test_where_the_answer_comes_and_stays():
    checkpoint, trace = traced("pre, tied")
    lens = logit_lens(checkpoint, trace, [0])
    for ranks, appears, settled in (
        ([3, 1, 2], 1, None),
        ([2, 1, 1], 1, 1),
        ([1, 2, 1], 0, 2),
        ([1, 1, 1], 0, 0),
        ([2, 2, 2], None, None),
    ):
        found = dataclasses.replace(lens, rank=np.array(ranks)[:, None])
        assert (found.appears(0), found.settled(0)) == (appears, settled)


def test_a_row_is_asked_for_what_follows_or_for_what_is_hidden():
    checkpoint, trace = traced("pre, tied")
    ids = [token.id for token in trace.tokens["decoder"]]
    assert right_tokens(checkpoint, trace) == (*ids[1:], int(trace.logits[-1].argmax()))
    checkpoint = tiny.checkpoint("encoder-only", **tiny.BERT)
    trace = checkpoint.trace(ids=[1, 20, 3, 22, 2])
    assert right_tokens(checkpoint, trace) == (1, 20, int(trace.logits[2].argmax()), 22, 2)


@pytest.mark.parametrize("against", [None, "mean", 5])
@every_model
@pytest.mark.sample(15)
def test_the_terms_sum_to_the_logit(name, against):
    checkpoint, trace = traced(name)
    for position in range(len(trace.logits)):
        found = logit_attribution(checkpoint, trace, position, 9, against=against)
        logits = trace.logits[position].double()
        off = 0.0 if against is None else logits.mean() if against == "mean" else logits[against]
        assert found.total == pytest.approx(float(logits[9] - off), abs=1e-5)
        assert found.proof.holds
        assert found.proof.difference == pytest.approx(abs(found.total - float(logits[9] - off)), abs=1e-9)


WITH_MORE_AT_THE_END = ("bert", "bart", "marian")


@pytest.mark.parametrize("name", [name for name in MODELS if name not in WITH_MORE_AT_THE_END])
@pytest.mark.sample(8)
def test_a_term_is_what_the_logit_loses_without_the_part_while_every_norm_stays(name):
    """Plain loops: the forward of one row again, with what each norm divides by given, and one head left out."""
    checkpoint, trace = traced(name)
    model, stack, position = checkpoint.model, stack_of(checkpoint), 2
    layers = getattr(model, stack).layers

    def frozen(norm, y, was):
        centre = isinstance(norm, torch.nn.LayerNorm)
        c = (was - was.mean()) if centre else was
        by = (c.square().mean() + norm.eps).sqrt()
        out = ((y - y.mean()) if centre else y) / by * norm.weight.double()
        return out + norm.bias.double() if centre else out

    adds = model.config.residual != "none"

    def logit(without=None):
        x = trace.residual(f"{stack}.0.pre")[position].double()
        was = x
        for number, block in enumerate(layers):
            at, post = f"{stack}.{number}", block.norm_order == "post"
            cross = block.cross_attention is not None
            order = [("self", block.self_attention, block.self_norm)]
            order += [("cross", block.cross_attention, block.cross_norm)] if cross else []
            for kind, attention, norm in order:
                record, wrote = trace[f"{at}.{kind}"], torch.zeros_like(x)
                for head in range(record.n_heads):
                    own = attention.W_O.weight[:, head * attention.d_head : (head + 1) * attention.d_head].double()
                    if (f"{at}.{kind}", head) != without:
                        wrote = wrote + own @ record.z(head)[position].double()
                bias = 0.0 if attention.W_O.bias is None else attention.W_O.bias.double()
                whole = attention.W_O(torch.cat([record.z(h)[position] for h in range(record.n_heads)])).double()
                wrote = wrote + bias
                x, was = (x + wrote, was + whole) if adds else (wrote, whole)
                if post:
                    x, was = frozen(norm, x, was), norm(was.float()).double()
            read = was.float()
            before = block.feedforward_norm if block.norm_order == "pre" else None
            read = read if before is None else before(read)
            wrote = block.feedforward(read[None, None])[0, 0].double()
            x, was = (x + wrote, was + wrote) if adds else (wrote, wrote)
            if post and block.feedforward_norm is not None:
                x, was = frozen(block.feedforward_norm, x, was), block.feedforward_norm(was.float()).double()
        last = getattr(model, stack).final_norm
        x = x if last is None else frozen(last, x, was)
        table = (model.embedding if model.unembedding is None else model.unembedding).weight.double()
        return float(table[9] @ x * model.config.logit_scale)

    found = logit_attribution(checkpoint, trace, position, 9, against=None)
    with torch.no_grad():
        whole = logit()
        losses = {(t.place, t.head): whole - logit((t.place, t.head)) for t in found.terms if t.part == "head"}
    assert whole == pytest.approx(float(trace.logits[position, 9]), abs=1e-5)
    for term in found.terms:
        if term.part == "head":
            assert term.value == pytest.approx(losses[term.place, term.head], abs=2e-5)


@every_model
def test_keys_and_neurons_sum_to_their_head_and_network(name):
    checkpoint, trace = traced(name)
    found = logit_attribution(checkpoint, trace, 2, 9)
    for term in found.terms:
        if term.part == "head":
            assert by_key(checkpoint, trace, found, term.place, term.head).sum() == pytest.approx(term.value, abs=1e-5)
        elif term.part == "feedforward":
            assert neurons(checkpoint, trace, found, term.layer).sum() == pytest.approx(term.value, abs=1e-9)
    config = checkpoint.model.config
    for kind in ("self", "cross"):
        terms = [term for term in found.terms if term.part == "head" and term.place.endswith(kind)]
        assert found.heads(kind).shape == ((2, config.n_heads) if terms else (0, 0))
        written = [value for value in found.heads(kind).ravel().tolist() if value]  # some layers have fewer heads
        assert written == [term.value for term in terms if term.value]  # layer by layer


def test_every_part_of_a_model_has_its_term():
    checkpoint, trace = traced("bart")
    parts = [term.part for term in logit_attribution(checkpoint, trace, 1, 9).terms]
    assert parts[:3] == ["token", "position", "norm_bias"]
    assert parts.count("head") == 2 * 2 * 4
    assert parts.count("feedforward") == parts.count("feedforward_bias") == 2
    assert parts.count("attention_bias") == 4
    assert parts[-1] == "logit_bias"
    checkpoint, trace = traced("bert")
    parts = [term.part for term in logit_attribution(checkpoint, trace, 1, 9).terms]
    assert parts[:3] == ["token", "position", "segment"]
    assert parts[-3:] == ["head_bias", "norm_bias", "logit_bias"]


def test_numbers_set_by_hand_are_a_term_of_their_own():
    edit = Edit(
        (Cell("decoder.0.mid", (2, 3), 2.5), Cell("decoder.1.pre", (2, 0), -1.0), Cell("decoder.0.mid", (1, 0), 4.0))
    )
    for name in ("pre, tied", "post, untied"):
        checkpoint, trace = made(name, edit=edit)
        found = logit_attribution(checkpoint, trace, 2, 9)
        assert found.proof.holds
        assert [term.place for term in found.terms if term.part == "by_hand"] == ["decoder.0.mid", "decoder.1.pre"]


def test_a_wrong_term_would_be_found():
    """The proof is no tautology: with another W_O it fails."""
    checkpoint, trace = made("pre, tied")
    with torch.no_grad():
        checkpoint.model.decoder.layers[1].self_attention.W_O.weight[0] += 1.0
    assert not logit_attribution(checkpoint, trace, 2, 9).proof.holds


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["post, tied", "llama", "bert"])
def test_terms_of_half_precision_sum_as_closely_as_it_allows(name, dtype):
    architecture, options = MODELS[name]
    checkpoint = tiny.checkpoint(architecture, **options)
    checkpoint.model.to(dtype)
    target = "a cat" if architecture == "encoder-decoder" else None
    trace = checkpoint.trace("我有一只猫。", target=target)
    found = logit_attribution(checkpoint, trace, 2, 9)
    assert found.proof.holds
    assert found.proof.precision == str(dtype).removeprefix("torch.")
    assert found.proof.difference < 0.1
    assert logit_lens(checkpoint, trace).proof.holds


def test_the_length_of_what_arrives_from_a_key_is_that_of_its_weighted_value_times_the_output_matrix():
    checkpoint, trace = traced("llama")
    attention = checkpoint.model.decoder.layers[1].self_attention
    record = trace["decoder.1.self"]
    own = attention.W_O.weight[:, 2 * attention.d_head : 3 * attention.d_head]
    for i in range(record.q.shape[1]):
        norms = key_contributions(checkpoint, trace, "decoder.1.self", 2, i).norms
        arriving = record.pattern(2)[i][:, None] * record.v[record.kv_head(2)] @ own.T
        np.testing.assert_allclose(norms, arriving.norm(dim=1).detach().numpy(), atol=1e-6)


def test_the_head_that_was_set_to_copy_has_the_largest_term():
    checkpoint = induction_by_hand()
    trace = checkpoint.trace("abcdabc")
    token = int(trace.logits[-1].argmax())
    found = logit_attribution(checkpoint, trace, len(trace.logits) - 1, token)
    best = found.sorted[0]
    assert (best.part, best.layer, best.head) == ("head", *INDUCTION)
    assert best.value > 0.9 * found.logit
    keys = by_key(checkpoint, trace, found, best.place, best.head)
    assert trace.tokens["decoder"][int(keys.argmax())].id == token


def test_what_is_held_and_what_is_inexact_is_said():
    said = {name: " ".join(map(str, what_is_frozen(traced(name)[0]))) for name in MODELS}
    assert "after every sublayer" in said["post, tied"]
    assert "last norm" in said["pre, tied"]
    assert "Nothing had to be held" in said["pre without a last norm"]
    assert "activation" in said["bert"]
    assert "cross-attention" in said["t5"]
    lens = {name: " ".join(map(str, what_is_inexact(traced(name)[0]))) for name in MODELS}
    assert "every layer ends with its own" in lens["post, tied"]
    assert "learned for the rows that the last layer writes" in lens["llama"]
    assert "as they are" in lens["pre without a last norm"]


def test_what_is_not_there_is_refused():
    checkpoint, trace = traced("pre, tied")
    with pytest.raises(TraceError, match="no position 99"):
        logit_lens(checkpoint, trace, [0, 99])
    with pytest.raises(TraceError, match="no token -1"):
        logit_lens(checkpoint, trace, [0], targets=[-1])
    with pytest.raises(TraceError, match="no position"):
        logit_attribution(checkpoint, trace, -99, 9)
    with pytest.raises(TraceError, match="no token"):
        logit_attribution(checkpoint, trace, 0, 10**6)
    with pytest.raises(TraceError, match="no token"):
        logit_attribution(checkpoint, trace, 0, 9, against=10**6)
    both, trace = traced("post, tied")
    with pytest.raises(TraceError, match="writes nothing"):
        by_key(both, trace, logit_attribution(both, trace, 0, 9), "encoder.0.self", 0)


def test_tokens_with_the_same_logit_share_their_rank_and_none_of_them_is_first():
    """Nothing is said before the induction head has spoken: all logits are equal, those of the marks as well."""
    checkpoint = induction_by_hand()
    with torch.no_grad():
        for attention in (layer.self_attention for layer in checkpoint.model.decoder.layers):
            attention.W_O.weight[attention.W_O.weight.abs() < 0.5] = 0  # of the random heads
    trace = checkpoint.trace("a b c a b c")
    vocab = checkpoint.tokenizer.vocab_size
    answer = int(trace.logits[-1].argmax())
    lens = logit_lens(checkpoint, trace, [6], targets=[answer])
    assert lens.rank[:, 0].tolist() == [1, 1, 1]
    assert lens.tied[:, 0].tolist() == lens.first_tied[:, 0].tolist() == [vocab, vocab, 1]
    assert lens.settled(0) == lens.appears(0) == 2
    never = logit_lens(checkpoint, trace, [0], targets=[answer])  # the start mark says nothing at the end either
    assert never.settled(0) is never.appears(0) is None


def test_a_probability_counts_what_is_never_written_and_no_list_shows_it() -> None:
    """What is generated, the lens, the path, and the forced rows say the same of one row."""
    checkpoint = tiny.checkpoint(**tiny.MARIAN)
    pad = checkpoint.model.config.never_written
    with torch.no_grad():
        checkpoint.model.logit_bias[pad] = 12.0
    trace, last = checkpoint.trace("我有一只猫。", target="a cat"), 2
    step = next(iter(checkpoint.stream("我有一只猫。", target="a cat", max_new=1)))
    p = float(step.probabilities[step.id])
    assert len(trace.logits) == last + 1
    assert float(step.probabilities[pad]) > 0.9 > 2 * p
    lens = logit_lens(checkpoint, trace, [last], targets=[step.id])
    listed = next_tokens(checkpoint, trace, last)
    followed = follow_token(checkpoint, trace, last)
    answers = two_answers(two_runs(checkpoint, trace, checkpoint, trace), last)
    (token,) = checkpoint.tokenizer.tokens([step.id])
    assert pad not in [one.token.id for one in (*listed, *followed.candidates)]
    for found, probability in (
        (listed[0].token, listed[0].probability),
        (followed.writing.choices[last].own, followed.writing.probabilities[last]),
        (checkpoint.tokenizer.tokens(lens.top[-1, 0, :1].tolist())[0], lens.probabilities[-1, 0, 0]),
        (answers.tokens[0].token, answers.tokens[0].first),
    ):
        assert (found.id, probability) == (token.id, pytest.approx(p, rel=1e-5))
    assert followed.candidates[0] == next_tokens(checkpoint, trace, followed.position)[0]
    assert prompt_pair(checkpoint, "我有一只猫。", "我有一只狗。", target="a cat", other=5).answer == step.id


@pytest.mark.parametrize("name", ["stories", "cloze"])
def test_a_recorded_model_has_the_lens_of_the_same_model_converted(name):
    own = vf.load(name)
    trace = own.trace("The cat sat on the mat.")
    recorded = vf.wrap(own.model, own.tokenizer, mask_id=own.shape.mask_id)
    ids = [token.id for token in next(iter(trace.tokens.values()))]
    again = recorded.trace(ids=ids)
    targets = [ids[0]] * len(ids)
    mine, theirs = (logit_lens(one, run, targets=targets) for one, run in ((recorded, again), (own, trace)))
    assert mine.points == theirs.points
    assert mine.proof.holds
    np.testing.assert_allclose(mine.probabilities, theirs.probabilities, atol=1e-5)
    np.testing.assert_array_equal(mine.rank, theirs.rank)
    np.testing.assert_array_equal(mine.top[:, :, 0], theirs.top[:, :, 0])
