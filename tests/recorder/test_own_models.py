"""The bundled models, recorded as anybody's: what is recorded is what their own trace has, to 1e-6."""

import pytest
import torch
from torch.testing import assert_close

import vizformer as vf

TEXTS = {"zh-en": "我有一只猫。", "stories": "Once upon a time there was a cat.", "cloze": "The cat sat on the mat."}


@pytest.mark.parametrize("name", TEXTS)
def test_a_bundled_model_recorded_is_its_own_trace(name):
    checkpoint = vf.load(name)
    own = checkpoint.trace(TEXTS[name])
    stacks = [[token.id for token in own.tokens[stack]] for stack in own.tokens]
    recorded = vf.record(checkpoint.model, *(torch.tensor([ids]) for ids in stacks))
    assert not recorded.escaped, [str(said) for said in recorded.escaped]
    labels = [[token.text for token in tokens] for tokens in own.tokens.values()]
    app = recorded.with_tokens(*labels).as_trace()
    assert app.sites == own.sites
    for site in own.sites:
        mine, theirs = app[site], own[site]
        assert mine.tokens == theirs.tokens
        for head in range(theirs.n_heads):
            assert_close(mine.pattern(head), theirs.pattern(head), rtol=0, atol=1e-6)
            assert_close(mine.scores(head), theirs.scores(head), rtol=0, atol=2e-5)  # of scores up to some 20
            assert_close(mine.z(head), theirs.z(head), rtol=0, atol=5e-6)
        assert torch.equal(mine.reason(0), theirs.reason(0))
    assert all(one.is_exact for one in recorded.attention)
    for stream, x in app.residuals.items():
        if stream in own.residuals and not stream.endswith("final"):  # there the app has it after the last norm
            assert_close(x, own.residual(stream), rtol=0, atol=1e-6)
    assert_close(recorded.output[0], own.logits, rtol=0, atol=1e-5)
