"""The decoder-only model against the GPT-2 of `transformers`, every parameter randomised."""

import pytest
import torch

from tests import tiny
from vizformer.model import Trace, Transformer

transformers = pytest.importorskip("transformers")


def copied(theirs: torch.nn.Module, ours: Transformer) -> None:
    """GPT-2's Conv1D stores [in, out], nn.Linear [out, in]; its query, key and value are one matrix."""
    weights = {name.removeprefix("transformer."): tensor for name, tensor in theirs.state_dict().items()}
    own = {"embedding.weight": weights["wte.weight"], "position_embedding.weight": weights["wpe.weight"]}
    for kind in ("weight", "bias"):
        own[f"decoder.final_norm.{kind}"] = weights[f"ln_f.{kind}"]
        for index in range(ours.config.n_decoder_layers):
            path, other = f"decoder.layers.{index}", f"h.{index}"
            own[f"{path}.self_norm.{kind}"] = weights[f"{other}.ln_1.{kind}"]
            own[f"{path}.feedforward_norm.{kind}"] = weights[f"{other}.ln_2.{kind}"]
            qkv = weights[f"{other}.attn.c_attn.{kind}"].chunk(3, dim=-1)
            parts = {
                "self_attention.W_Q": qkv[0], "self_attention.W_K": qkv[1], "self_attention.W_V": qkv[2],
                "self_attention.W_O": weights[f"{other}.attn.c_proj.{kind}"],
                "feedforward.W_in": weights[f"{other}.mlp.c_fc.{kind}"],
                "feedforward.W_out": weights[f"{other}.mlp.c_proj.{kind}"],
            }  # fmt: skip
            own |= {f"{path}.{name}.{kind}": part.T if kind == "weight" else part for name, part in parts.items()}
    ours.load_state_dict(own)


def test_gpt2() -> None:
    config = transformers.GPT2Config(
        vocab_size=29, n_embd=16, n_head=4, n_layer=3, n_positions=12, n_inner=24, attn_implementation="eager",
        bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    theirs = tiny.randomise(transformers.GPT2LMHeadModel(config)).eval()
    same = tiny.config(
        "decoder-only", n_decoder_layers=3, max_positions=12, positions="learned", norm_order="pre", final_norm=True,
        activation="gelu_tanh",
    )  # fmt: skip
    ours = Transformer(same).eval()
    copied(theirs, ours)
    ids, trace = tiny.ids(12), Trace()
    found = ours(ids, trace=trace)
    with torch.no_grad():
        expected = theirs(ids, output_attentions=True, output_hidden_states=True)
    tiny.assert_close(found, expected.logits)
    hidden = [state[0] for state in expected.hidden_states]
    names = [f"decoder.{layer}.pre" for layer in range(3)] + ["decoder.final"]  # theirs ends after the final norm
    for name, state in zip(names, hidden, strict=True):
        tiny.assert_close(trace.residual(name), state)
    for layer, maps in enumerate(expected.attentions):
        for head in range(4):
            tiny.assert_close(trace[f"decoder.{layer}.self"].pattern(head), maps[0, head])
