"""Models of `transformers`: what is recorded is what their eager attention hands back."""

import pytest
import torch
from torch.testing import assert_close

from tests.recorder.all_types import CHOSEN, given, made
from vizformer.recorder import record

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

# their eager attention hands back weights without what multiplies v, or is asked for by other means
SDPA_TOO = [name for name in CHOSEN if name not in ("gptj", "gpt_oss", "falcon", "bloom", "mpt", "t5", "gemma2")]


@pytest.mark.parametrize("name", CHOSEN)
def test_maps_of_a_type_are_those_that_it_hands_back(name):
    model = made(name, "eager")
    inputs = given(model)
    with torch.no_grad():
        out = model(**inputs, output_attentions=True)
    trace = record(model, **inputs)
    assert len(trace.attention) == CHOSEN[name]
    assert not trace.escaped, [str(said) for said in trace.escaped]
    handed = [
        out.get(field) or () for field in ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
    ]
    maps = [weights[0] for group in handed for weights in group]
    assert len(maps) == CHOSEN[name]
    for attention in trace.attention:
        found = attention.maps()
        nearest = min(float((found - one).abs().max()) for one in maps if one.shape == found.shape)
        assert nearest <= 2e-6
        assert attention.is_exact, (attention.site, attention.error())
        assert all(form is not None for step in attention.forms for form in step), attention.site
        assert (attention.record.sinks is None) == (name != "gpt_oss")
        for head in range(attention.n_heads):
            assert_close(attention.record.pattern(head), found[head], rtol=0, atol=1e-5)
            assert_close(attention.record.z(head), attention.z(head), rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", SDPA_TOO)
def test_the_fused_call_of_a_type_records_what_the_eager_one_does(name):
    models = (made(name, attention) for attention in ("eager", "sdpa"))
    eager, fused = (record(model, **given(model)) for model in models)
    assert eager.sites == fused.sites
    for one, other in zip(eager.attention, fused.attention, strict=True):
        assert {call.kind for step in other.steps for call in step} == {"sdpa"}
        assert_close(one.maps(), other.maps(), rtol=0, atol=2e-5)
        assert other.is_exact
        assert one.is_cross == other.is_cross
