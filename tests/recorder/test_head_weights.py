"""The matrices of heads: those of the model's own parameters where the code has them, and none where no matrix does it."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

import vizformer as vf
from tests.recorder.hand_written import GPT, KINDS, D, Fused, Grouped, H, Separate, Torch, d, ids
from vizformer.errors import TraceError

LAYERS_OF = {
    "Separate": Separate,
    "Grouped": Grouped,
    **{name: KINDS[name] for name in ("Einsum", "KeysFirst", "Flattened")},
}


def heads_of(weight, heads=H):
    """[heads, d_in, d_head] of a Linear's [d_out, d_in]; heads that share one have it each."""
    own = weight.unflatten(0, (heads, -1)).mT
    return own.repeat_interleave(H // heads, 0)


@pytest.mark.parametrize("name", LAYERS_OF)
def test_matrices_are_those_of_the_parameters(name):
    model = GPT(LAYERS_OF[name])
    trace = vf.record(model, ids(3)).of_item(1)
    found, own = trace.head_weights("h.1.attn"), model.h[1].attn
    scale = d**-0.5 if name == "Flattened" else 1.0  # which its code gives to the queries
    assert_close(found.q.weight, heads_of(own.wq.weight) * scale)
    assert_close(found.q.bias, own.wq.bias.unflatten(0, (H, d)) * scale)
    assert_close(found.k.weight, heads_of(own.wk.weight, own.kv_heads))
    assert_close(found.v.weight, heads_of(own.wv.weight, own.kv_heads))
    assert_close(found.W_O, own.wo.weight.T.unflatten(0, (H, d)))
    assert_close(found.v.x @ found.v.weight + found.v.bias[:, None], trace["h.1.attn"].v)


def test_one_matrix_for_queries_keys_and_values_is_cut_as_the_code_cuts_it():
    model = GPT(Fused)
    found = vf.record(model, ids()).head_weights("h.0.attn")
    for one, weight in zip((found.q, found.k, found.v), model.h[0].attn.c_attn.weight.chunk(3), strict=True):
        assert_close(one.weight, heads_of(weight))


def test_the_matrices_inside_of_a_function_of_torch_are_found():
    model = GPT(Torch)
    trace = vf.record(model, ids())
    (site,) = trace.sites[:1]
    found = trace.head_weights(site)
    weight = dict(model.named_parameters())[f"{site}.in_proj_weight"].chunk(3)[2]
    assert_close(found.v.weight, heads_of(weight))
    assert found.W_O.shape == (H, d, D)


class Turned(Separate):
    """Positions turn queries and keys; what comes out goes through a norm."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(D)

    def forward(self, x):
        q, k, v = self.qkv(x)
        angle = torch.arange(x.shape[1])[:, None] / 10 ** torch.arange(d // 2)
        cos, sin = (torch.cat([one, one], -1) for one in (angle.cos(), angle.sin()))
        q, k = (one * cos + torch.cat([-one[..., d // 2 :], one[..., : d // 2]], -1) * sin for one in (q, k))
        return self.norm(self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True)))


def test_no_matrix_is_made_up_where_the_rows_are_not_its():
    model = GPT(Turned)
    found = vf.record(model, ids()).head_weights("h.0.attn")
    assert found.q is None
    assert found.k is None
    assert found.W_O is None
    assert_close(found.v.weight, heads_of(model.h[0].attn.wv.weight))


def test_the_matrices_of_an_encoder_and_a_decoder_that_reads_it():
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    config = T5Config(vocab_size=29, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4, decoder_start_token_id=0)
    model = T5ForConditionalGeneration(config).eval()
    trace = vf.record(model, input_ids=ids(n=9), decoder_input_ids=ids(n=5))
    for site in trace.sites:
        found, own = trace.head_weights(site), model.get_submodule(site)
        for one, weight in ((found.q, own.q.weight), (found.k, own.k.weight), (found.v, own.v.weight)):
            assert_close(one.weight, heads_of(weight))
        assert_close(found.W_O, own.o.weight.T.unflatten(0, (4, 4)))


def test_a_trace_that_cannot_run_again_has_no_matrices():
    model = GPT()
    with torch.no_grad(), vf.recording(model) as trace:
        model(ids())
    with pytest.raises(TraceError, match="run the model once more"):
        trace.head_weights("h.0.attn")
