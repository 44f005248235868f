"""Programs with one wrong line: the wrong one fails or departs from the model, the right one gives the model's numbers."""

import numpy as np
import pytest
import torch

from tests import tiny
from tests.bundled import load
from vizformer.analysis.costs.parameter_count import BASE, count
from vizformer.analysis.masks.mistakes import masked_after
from vizformer.analysis.own_steps import copied_errors, error_contrasts
from vizformer.explain import examples, masked_attention, standalone
from vizformer.model.mask_recipe import MaskRecipe

TEXTS = {
    "zh-en": "我昨天在公园里看见了两只狗。",
    "stories": "The cat sat on the chair.",
    "cloze": "She opened the door.",
}


@pytest.fixture(scope="module", params=TEXTS)
def read(request):
    checkpoint = load(request.param)
    return checkpoint, checkpoint.trace(TEXTS[request.param])


def records(trace):
    """The first head of the stack that reads, and of the one that writes."""
    stack = error_contrasts.first_stack(trace)
    return trace[f"{stack}.0.self"], trace["decoder.0.self" if "decoder" in trace.tokens else f"{stack}.0.self"]


def given(name, checkpoint, trace):
    reads, writes = records(trace)
    return {
        "dropout": lambda: error_contrasts.dropout_given(trace),
        "scale": lambda: error_contrasts.head_given(reads, 0),
        "waves": lambda: {"n": 6, "d": 16},
        "total": error_contrasts.hand_given,
        "count": dict,
        "after": lambda: error_contrasts.causal_given(writes, 0),
        "cache": lambda: error_contrasts.head_given(writes, 0),
        "embedding": lambda: {"rows": torch.randn(5, 16), "P": torch.randn(5, 16)},
        "join": lambda: error_contrasts.join_given(checkpoint, trace),
    }[name]()


@pytest.mark.parametrize("name", copied_errors.EXERCISES)
def test_every_program_can_be_pasted_and_its_line_alone_is_wrong(read, name):
    exercise, numbers = copied_errors.EXERCISES[name], given(name, *read)
    assert exercise.lines[exercise.wrong].strip() != exercise.right.strip()
    wrong, right = (copied_errors.run(name, numbers, corrected=corrected) for corrected in (False, True))
    assert not right.error
    exec(standalone(exercise.program(corrected=True), numbers).text(), {})
    if name in ("dropout", "count"):
        with pytest.raises((TypeError, AssertionError)) as raised:
            exec(standalone(exercise.program(corrected=False), numbers).text(), {})
        assert wrong.error == f"{raised.type.__name__}: {raised.value}"
    else:
        assert not wrong.error
        exec(standalone(exercise.program(corrected=False), numbers).text(), {})
        assert wrong.names[exercise.result].shape == right.names[exercise.result].shape
        assert (wrong.names[exercise.result] - right.names[exercise.result]).abs().max() > 1e-3


def test_the_right_lines_give_what_the_model_computed_and_the_wrong_ones_do_not(read):
    checkpoint, trace = read
    reads, writes = records(trace)
    contrasts = {
        "scale": error_contrasts.scale_contrast(reads, 0),
        "total": error_contrasts.total_contrast(),
        "after": error_contrasts.after_contrast(writes, 0),
        "cache": error_contrasts.cache_contrast(writes, 0),
        "waves": error_contrasts.waves_contrast(7, checkpoint.model.config.d_model),
        "join": error_contrasts.join_contrast(checkpoint, trace),
    }
    if error_contrasts.scales_its_embedding(checkpoint):
        contrasts["embedding"] = error_contrasts.embedding_contrast(checkpoint, trace)
    for name, found in contrasts.items():
        assert found.proof.holds, name
        assert found.proof.difference < 1e-5, name
        assert found.off > 1e-3, name
    assert (checkpoint.name == "zh-en") == ("embedding" in contrasts)


def test_the_flat_softmax(read):
    found = error_contrasts.scale_contrast(records(read[1])[0], 0)
    assert error_contrasts.mean_largest(found.wrong) < error_contrasts.mean_largest(found.right)
    np.testing.assert_allclose(found.wrong.sum(axis=1), 1, atol=1e-6)


def test_the_weights_by_hand_sum_to_1_2():
    wrong, right = (
        copied_errors.run("total", error_contrasts.hand_given(), corrected=which).names for which in (False, True)
    )
    assert float(wrong["total"]) == pytest.approx(examples.PRINTED_SUM)
    assert float(right["total"]) == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(wrong["weights"], examples.PRINTED_WEIGHTS, atol=1e-6)
    np.testing.assert_allclose(right["weights"], [0.33, 0.17, 0.33, 0.17], atol=0.006)


def test_the_decoder_is_counted_as_the_model_has_it():
    right = copied_errors.run("count", {}, corrected=True).names
    paper = count(BASE)
    assert (right["encoder"], right["decoder"], right["embedding"], right["total"]) == (
        paper.encoder,
        paper.decoder,
        paper.embedding,
        paper.model,
    )
    assert (paper.encoder, paper.decoder, paper.embedding) == (18_914_304, 25_224_192, 18_944_000)
    assert paper.model == 63_082_496


def test_masked_after_the_softmax_is_the_mistake_of_the_lesson_masks(read):
    record = records(read[1])[1]
    blocked = MaskRecipe("causal").mask(record.q.shape[1])
    masked = masked_attention(record, 0, blocked)
    found = error_contrasts.after_contrast(record, 0)
    np.testing.assert_allclose(found.wrong, masked_after(masked.scores, masked.blocked), atol=1e-6)


def test_with_is_causal_the_newest_token_sees_the_first_one_alone(read):
    record = records(read[1])[1]
    found = error_contrasts.cache_contrast(record, 0)
    np.testing.assert_allclose(found.wrong[0], error_contrasts.first_value(record, 0), atol=1e-6)
    if record.bias is not None:
        np.testing.assert_allclose(found.right[0], record.z(0)[-1].numpy(), atol=1e-5)


def test_where_the_blocks_of_wrongly_joined_rows_come_from():
    heads, n, d = 3, 4, 2
    z = torch.arange(heads * n).repeat_interleave(d).reshape(heads, n, d)  # each block holds its head n + its token
    wrong = copied_errors.run("join", {"z": z.float(), "W_O": torch.eye(heads * d)}, corrected=False).names["joined"]
    blocks = wrong.reshape(n, heads, d)[..., 0].int().tolist()
    expected = [[head * n + token for head, token in row] for row in error_contrasts.joined_from(heads, n)]
    assert blocks == expected


@pytest.mark.sweep
def test_what_a_translator_writes_from_a_wrong_input():
    checkpoint = load("zh-en")
    trace = checkpoint.trace(TEXTS["zh-en"])
    own = checkpoint.generate(TEXTS["zh-en"]).text
    found = error_contrasts.embedding_contrast(checkpoint, trace)
    assert error_contrasts.written_with(checkpoint, trace, found.right).text == own
    assert error_contrasts.written_with(checkpoint, trace, found.wrong).text != own
    for corrected in (True, False):
        entering = error_contrasts.entering_with_waves(checkpoint, trace, corrected=corrected)
        assert (error_contrasts.written_with(checkpoint, trace, entering).text == own) == corrected


def test_another_scale_than_the_papers_goes_into_the_queries(read):
    record = records(read[1])[0]
    given = error_contrasts.head_given(record, 0)
    scores = given["q"] @ given["k"].T / given["q"].shape[1] ** 0.5
    torch.testing.assert_close(scores, record.content_scores(0), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("capped", [False, True])
def test_the_soft_cap_of_a_model_is_left_out_and_said(capped):
    checkpoint = tiny.checkpoint("decoder-only", **(tiny.GEMMA2 if capped else {"norm_order": "pre"}))
    record = checkpoint.trace("I have a cat.")["decoder.0.self"]
    assert (record.scoring.cap is not None) == capped
    found = error_contrasts.scale_contrast(record, 0)
    assert ("without its soft cap" in str(found.proof.anchor)) == capped
    assert found.proof.holds


def test_what_the_rows_of_a_head_sum_to(read):
    record = records(read[1])[0]
    found = error_contrasts.row_sums(record, 0)
    assert found.off < 1e-6
    rounded = np.round(record.pattern(0).double().numpy(), 1).sum(axis=1)
    assert (found.least, found.most) == pytest.approx((rounded.min(), rounded.max()))
