"""The lens and gradients of somebody's own code: those of our own arithmetic where that code is our Transformer."""

import numpy as np
import pytest
import torch
from torch import nn

import vizformer as vf
from tests.analysis.test_input_attribution import MODELS, traced
from tests.checkpoints.recorded.test_wrap import Letters, Translator
from tests.recorder.hand_written import GPT
from vizformer.errors import TraceError

PAIR = {"run": lambda model, ids, target_ids: model(ids, target_ids)}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.sample(4)
def test_gradients_are_those_of_our_own_arithmetic(name):
    checkpoint, trace = traced(name)
    pair = MODELS[name][0] == "encoder-decoder"
    wrapped = vf.wrap(
        checkpoint.model, checkpoint.tokenizer, **(PAIR if pair else {}), start_ids=checkpoint.shape.start_ids
    )
    ids = {stack: [token.id for token in tokens] for stack, tokens in trace.tokens.items()}
    first, *target = ids.values()
    recorded = wrapped.trace(ids=first, target_ids=target[0] if target else None)
    own = vf.analysis.input_attribution(checkpoint, trace, 1, 9)
    found = vf.analysis.input_attribution(wrapped, recorded, 1, 9)
    assert found.value == pytest.approx(own.value, abs=1e-4)
    for mine, theirs in zip(own.integrated.values(), found.integrated.values(), strict=True):
        np.testing.assert_allclose(theirs, mine, atol=1e-4)
    for mine, theirs in zip(own.gradient_x_input.values(), found.gradient_x_input.values(), strict=True):
        np.testing.assert_allclose(theirs, mine, atol=1e-4)


class Last(GPT):
    runs = 0

    def forward(self, ids):
        self.runs += 1
        return super().forward(ids)[:, [-1]], None


def test_a_model_that_hands_back_its_last_row_has_the_gradients_of_each():
    found, whole = (
        vf.analysis.input_attribution(one, one.trace("a cat sat"), 4, 7)
        for one in (vf.wrap(Last(), Letters()), vf.wrap(GPT(), Letters()))
    )
    np.testing.assert_allclose(found.integrated["decoder"][:5], whole.integrated["decoder"][:5], atol=1e-4)
    assert not whole.integrated["decoder"][5:].any()  # no row sees a later one
    assert found.share_missing <= 0.01


def test_each_point_is_one_run_of_a_model_that_hands_back_its_last_row():
    checkpoint = vf.wrap(Last(), Letters())
    trace = checkpoint.trace("a cat sat")
    rows = checkpoint.embeddings(trace)["decoder"][0].repeat(3, 1, 1)
    before = checkpoint.module.runs
    found = checkpoint.logits_of(trace, {"decoder": rows}, 4)
    assert checkpoint.module.runs - before == 3
    torch.testing.assert_close(found[2], trace.logits[4])
    torch.testing.assert_close(checkpoint.logits_of(trace, {"decoder": rows}, -1)[0], trace.logits[-1])


def test_both_stacks_have_their_own_rows():
    checkpoint = vf.wrap(Translator().eval(), Letters(), start_ids=[1])
    found = vf.analysis.input_attribution(checkpoint, checkpoint.trace("a cat", target="b dog"), 2, 7, against=None)
    assert {stack: len(each) for stack, each in found.integrated.items()} == {"encoder": 5, "decoder": 6}
    assert abs(found.missing) <= 1e-3
    assert not found.integrated["decoder"][3:].any()


class TwoTables(GPT):
    def __init__(self):
        super().__init__()
        self.more = nn.Embedding(29, 16)

    def forward(self, ids):
        x = self.wte(ids) + self.more(ids)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class ByProduct(GPT):
    def forward(self, ids):
        x = nn.functional.one_hot(ids, 29).float() @ self.wte.weight
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class NoGradient(GPT):
    @torch.no_grad()
    def forward(self, ids):
        return super().forward(ids)


@pytest.mark.parametrize(
    ("model", "said"),
    [(TwoTables, "in 2 known tables"), (ByProduct, "in 0 known tables"), (NoGradient, "No gradient comes")],
)
def test_what_has_no_gradients_by_one_table_says_so(model, said):
    checkpoint = vf.wrap(model(), Letters())
    with pytest.raises(TraceError, match=said):
        vf.analysis.input_attribution(checkpoint, checkpoint.trace("a cat"), 1, 3)


def test_the_lens_of_a_model_that_hands_back_its_last_row_is_that_of_the_whole():
    found, whole = (
        vf.analysis.logit_lens(one, one.trace("a cat sat"))
        for one in (vf.wrap(Last(), Letters()), vf.wrap(GPT(), Letters()))
    )
    np.testing.assert_allclose(found.probabilities, whole.probabilities, atol=1e-5)
    np.testing.assert_array_equal(found.top, whole.top)
    assert found.proof.holds
