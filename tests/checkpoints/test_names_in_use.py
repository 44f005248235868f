"""Names of tensors in repositories that many learn from: each is read, and asks only what no tensor tells.

The numbers are held in tests/parity/test_handmade_models.py; here it is the names.
"""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from vizformer.checkpoints import UnansweredError, load

D, FF, V, S, N, H = 16, 24, 23, 31, 12, 4
Shapes = dict[str, tuple[int, ...]]


def lin(n, o, i, b=True):
    d = {f"{n}.weight": (o, i)}
    if b:
        d[f"{n}.bias"] = (o,)
    return d


def norm(n, w="weight", b="bias"):
    return {f"{n}.{w}": (D,), f"{n}.{b}": (D,)}


def norm_1_and_attn_1():
    d = {
        "encoder.embed.embed.weight": (S, D),
        "decoder.embed.embed.weight": (V, D),
        "encoder.pe.pe": (1, N, D),
        "decoder.pe.pe": (1, N, D),
    }
    for st in ("encoder", "decoder"):
        for i in range(2):
            p = f"{st}.layers.{i}"
            for k in range(3 if st == "decoder" else 2):
                d |= norm(f"{p}.norm_{k + 1}", "alpha", "bias")
            for a in ["attn_1", "attn_2"] if st == "decoder" else ["attn"]:
                for m in ("q_linear", "v_linear", "k_linear", "out"):
                    d |= lin(f"{p}.{a}.{m}", D, D)
            d |= lin(f"{p}.ff.linear_1", FF, D) | lin(f"{p}.ff.linear_2", D, FF)
        d |= norm(f"{st}.norm", "alpha", "bias")
    return d | lin("out", V, D)


def one_matrix_for_all_heads(dh=4):
    d = {}
    for st, v in (("encoder", S), ("decoder", V)):
        d[f"{st}.word_embedding.weight"] = (v, D)
        d[f"{st}.position_embedding.weight"] = (N, D)
        for i in range(2):
            p = f"{st}.layers.{i}"

            def block(q):
                e = {}
                for m in ("values", "keys", "queries"):
                    e |= lin(f"{q}.attention.{m}", dh, dh, False)
                return e | lin(f"{q}.attention.fc_out", D, D)

            def tb(q):
                return (
                    block(q)
                    | norm(f"{q}.norm1")
                    | norm(f"{q}.norm2")
                    | lin(f"{q}.feed_forward.0", FF, D)
                    | lin(f"{q}.feed_forward.2", D, FF)
                )

            if st == "encoder":
                d |= tb(p)
            else:
                d |= block(p) | norm(f"{p}.norm") | tb(f"{p}.transformer_block")
    return d | lin("decoder.fc_out", V, D)


def blocks_with_numbers_in_their_names():
    d = {}
    for st, v in (("encoder", S), ("decoder", V)):
        d[f"{st}.embedding.weight"] = (v, D)
        for i in range(2):
            p = f"{st}.blks.block{i}"
            for a in ["attention1", "attention2"] if st == "decoder" else ["attention"]:
                for m in ("W_q", "W_k", "W_v", "W_o"):
                    d |= lin(f"{p}.{a}.{m}", D, D, False)
            for k in range(3 if st == "decoder" else 2):
                d |= norm(f"{p}.addnorm{k + 1}.ln")
            d |= lin(f"{p}.ffn.dense1", FF, D) | lin(f"{p}.ffn.dense2", D, FF)
    return d | lin("decoder.dense", V, D)


def linear_layers_by_number():
    d = {
        "bert.embedding.token.weight": (V, D),
        "bert.embedding.segment.weight": (3, D),
        "bert.embedding.position.pe": (1, N, D),
    }
    for i in range(2):
        p = f"bert.transformer_blocks.{i}"
        for k in range(3):
            d |= lin(f"{p}.attention.linear_layers.{k}", D, D)
        d |= (
            lin(f"{p}.attention.output_linear", D, D)
            | lin(f"{p}.feed_forward.w_1", FF, D)
            | lin(f"{p}.feed_forward.w_2", D, FF)
        )
        d |= norm(f"{p}.input_sublayer.norm", "a_2", "b_2") | norm(f"{p}.output_sublayer.norm", "a_2", "b_2")
    return d | lin("next_sentence.linear", 2, D) | lin("mask_lm.linear", V, D)


def graykode():
    d = {
        "embedding.tok_embed.weight": (V, D),
        "embedding.seg_embed.weight": (2, D),
        "embedding.pos_embed.weight": (N, D),
    } | norm("embedding.norm")
    for i in range(2):
        p = f"layers.{i}"
        for k in ("W_Q", "W_K", "W_V"):
            d |= lin(f"{p}.enc_self_attn.{k}", D, D)
        d |= lin(f"{p}.enc_self_attn.fc", D, D) | norm(f"{p}.enc_self_attn.norm")
        d |= lin(f"{p}.pos_ffn.fc1", FF, D) | lin(f"{p}.pos_ffn.fc2", D, FF) | norm(f"{p}.pos_ffn.norm")
    return (
        d
        | lin("fc", D, D)
        | lin("classifier", 2, D)
        | lin("linear", D, D)
        | norm("norm")
        | lin("decoder", V, D, False)
        | {"decoder_bias": (V,)}
    )


def norms_inside_of_attention():
    d = {
        "encoder.src_word_emb.weight": (S, D),
        "decoder.trg_word_emb.weight": (V, D),
        "encoder.position_enc.pos_table": (1, N, D),
        "decoder.position_enc.pos_table": (1, N, D),
    }
    for st in ("encoder", "decoder"):
        for i in range(2):
            p = f"{st}.layer_stack.{i}"
            for a in ["slf_attn", "enc_attn"] if st == "decoder" else ["slf_attn"]:
                for m in ("w_qs", "w_ks", "w_vs", "fc"):
                    d |= lin(f"{p}.{a}.{m}", D, D, False)
                d |= norm(f"{p}.{a}.layer_norm")
            d |= lin(f"{p}.pos_ffn.w_1", FF, D) | lin(f"{p}.pos_ffn.w_2", D, FF) | norm(f"{p}.pos_ffn.layer_norm")
        d |= norm(f"{st}.layer_norm")
    return d | lin("trg_word_prj", V, D, False)


def final_layer_norm_of_a_layer():
    d = {"embed.weight": (V, D), "pos.weight": (N, D)}
    for i in range(2):
        p = f"layers.{i}"
        for m in ("q_proj", "k_proj", "v_proj", "out_proj"):
            d |= lin(f"{p}.self_attn.{m}", D, D)
        d |= (
            norm(f"{p}.self_attn_layer_norm")
            | norm(f"{p}.final_layer_norm")
            | lin(f"{p}.fc1", FF, D)
            | lin(f"{p}.fc2", D, FF)
        )
    return d | lin("head", V, D) | norm("final_norm")


def convolutions_over_one_position():
    d = {"embed.weight": (V, D)}
    for i in range(2):
        p = f"layers.{i}"
        for m in ("W_Q", "W_K", "W_V", "linear"):
            d |= lin(f"{p}.enc_self_attn.{m}", D, D)
        d |= {
            f"{p}.pos_ffn.conv1.weight": (FF, D, 1),
            f"{p}.pos_ffn.conv1.bias": (FF,),
            f"{p}.pos_ffn.conv2.weight": (D, FF, 1),
            f"{p}.pos_ffn.conv2.bias": (D,),
        }
        d |= norm(f"{p}.enc_self_attn.layer_norm") | norm(f"{p}.pos_ffn.layer_norm")
    return d | lin("projection", V, D, False)


def pairs_of_attention_and_network():
    d = {"token_embedding.weight": (V, D), "pos_embedding": (1, N, D)}
    for i in range(2):
        p = f"transformer.layers.{i}"
        d |= norm(f"{p}.0.norm") | lin(f"{p}.0.to_qkv", 3 * D, D, False) | lin(f"{p}.0.to_out.0", D, D)
        d |= norm(f"{p}.1.net.0") | lin(f"{p}.1.net.1", FF, D) | lin(f"{p}.1.net.4", D, FF)
    return d | norm("transformer.norm") | lin("mlp_head", V, D)


def gpt2_around_multihead_attention():
    d = {"wte.weight": (V, D), "wpe.weight": (N, D)}
    for i in range(2):
        p = f"h.{i}"
        d |= (
            norm(f"{p}.ln_1")
            | norm(f"{p}.ln_2")
            | {f"{p}.attn.in_proj_weight": (3 * D, D), f"{p}.attn.in_proj_bias": (3 * D,)}
            | lin(f"{p}.attn.out_proj", D, D)
            | lin(f"{p}.mlp.0", FF, D)
            | lin(f"{p}.mlp.3", D, FF)
        )
    return d | norm("ln_f") | lin("lm_head", V, D, False)


def a_list_of_heads():
    d = {"embedding.weight": (V, D), "positional.weight": (N, D)}
    for i in range(2):
        p = f"decoder_blocks.{i}"
        for h in range(H):
            for m in ("Wq", "Wk", "Wv"):
                d |= lin(f"{p}.multi_head_attention.heads.{h}.{m}", D // H, D, False)
        d |= (
            lin(f"{p}.multi_head_attention.linear", D, D)
            | norm(f"{p}.layer_norm1")
            | norm(f"{p}.layer_norm2")
            | lin(f"{p}.feed_forward.fc1", FF, D)
            | lin(f"{p}.feed_forward.fc2", D, FF)
        )
    return d | lin("fc_out", V, D)


def a_translator_with_lists_of_heads():
    d = {"src_embed.weight": (S, D), "tgt_embed.weight": (V, D)}
    for st in ("encoder", "decoder"):
        for i in range(2):
            p = f"{st}_layers.{i}"
            for a in ["self_attention", "cross_attention"] if st == "decoder" else ["self_attention"]:
                for h in range(H):
                    for m in ("q", "k", "v"):
                        d |= lin(f"{p}.{a}.heads.{h}.{m}", D // H, D)
                d |= lin(f"{p}.{a}.linear", D, D)
            for k in range(3 if st == "decoder" else 2):
                d |= norm(f"{p}.norm{k + 1}")
            d |= lin(f"{p}.ff.0", FF, D) | lin(f"{p}.ff.2", D, FF)
    return d | lin("fc", V, D)


def encoder_layer_0():
    d = {"tok_embed.weight": (V, D)}
    for i in range(2):
        p = f"encoder_layer_{i}"
        d |= (
            lin(f"{p}.attn.query", D, D)
            | lin(f"{p}.attn.key", D, D)
            | lin(f"{p}.attn.value", D, D)
            | lin(f"{p}.attn.out", D, D)
            | norm(f"{p}.ln1")
            | norm(f"{p}.ln2")
            | lin(f"{p}.linear_1", FF, D)
            | lin(f"{p}.linear_2", D, FF)
        )
    return d | lin("classifier.0", D, D) | lin("classifier.2", 3, D)


def query_key_value():
    d = {"tokens_embed.weight": (V, D), "positions_embed.weight": (N, D)}
    for i in range(2):
        p = f"transformer_blocks.{i}"
        d |= (
            lin(f"{p}.attention.query_key_value", 3 * D, D)
            | lin(f"{p}.attention.dense", D, D)
            | norm(f"{p}.norm_attn")
            | norm(f"{p}.norm_mlp")
            | lin(f"{p}.mlp.dense_h_to_4h", FF, D)
            | lin(f"{p}.mlp.dense_4h_to_h", D, FF)
        )
    return d | norm("norm_out") | lin("out_head", V, D, False)


def scale_and_shift():
    d = {"tok_emb.weight": (V, D), "pos_emb.weight": (N, D)}
    for i in range(2):
        p = f"trf_blocks.{i}"
        for m in ("W_query", "W_key", "W_value", "out_proj"):
            d |= lin(f"{p}.att.{m}", D, D, m == "out_proj")
        d |= {f"{p}.att.mask": (N, N)}
        d |= (
            lin(f"{p}.ff.layers.0", FF, D)
            | lin(f"{p}.ff.layers.2", D, FF)
            | norm(f"{p}.norm1", "scale", "shift")
            | norm(f"{p}.norm2", "scale", "shift")
        )
    return d | norm("final_norm", "scale", "shift") | lin("out_head", V, D, False)


def tensor(name: str, shape: tuple[int, ...], dice: torch.Generator) -> Tensor:
    if name.endswith(".mask"):
        return torch.ones(shape).triu(1)
    if name.endswith((".pe", ".pos_table")):
        angles = torch.arange(N)[:, None] * torch.exp(-torch.arange(0, D, 2) * math.log(10_000.0) / D)
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).reshape(shape)
    return torch.randn(shape, generator=dice) * 0.3


USUAL = {"n_heads", "norm_order", "activation", "scaled_embedding"}
ALONE = USUAL | {"causal"}
CONVENTIONS = {"residual", "norm_eps", "score_scale", "scaled_rows"}  # which most authors share, and not all
ASKED: dict[Callable[[], Shapes], set[str]] = {
    norm_1_and_attn_1: USUAL | {"norm", "norm_place"},
    one_matrix_for_all_heads: (USUAL - {"n_heads"}) | {"score_scale"},
    blocks_with_numbers_in_their_names: USUAL | {"positions"},
    linear_layers_by_number: ALONE,
    norms_inside_of_attention: USUAL | {"norm_place"},
    final_layer_norm_of_a_layer: ALONE,
    convolutions_over_one_position: ALONE | {"positions"},
    pairs_of_attention_and_network: ALONE | {"norm_place"},
    gpt2_around_multihead_attention: ALONE,
    a_list_of_heads: ALONE - {"n_heads"},
    a_translator_with_lists_of_heads: (USUAL - {"n_heads"}) | {"positions"},
    encoder_layer_0: ALONE | {"positions"},
    query_key_value: ALONE | {"qkv_rows"},
    scale_and_shift: USUAL | {"norm"},
}


# Beside the conventions: where the numbers of a head lie, where positions begin, whether tokens alone are normalised.
HEADS, ROW, EMBEDDINGS = "head_rows", "first_position", "normed_embeddings"
MORE: dict[Callable[[], Shapes], set[str]] = {
    norm_1_and_attn_1: {HEADS, EMBEDDINGS},
    one_matrix_for_all_heads: {ROW},
    blocks_with_numbers_in_their_names: {HEADS},
    linear_layers_by_number: {HEADS, "segment_row"},
    norms_inside_of_attention: {HEADS, EMBEDDINGS},
    final_layer_norm_of_a_layer: {ROW, HEADS},
    convolutions_over_one_position: {HEADS},
    pairs_of_attention_and_network: {ROW, HEADS, EMBEDDINGS},
    gpt2_around_multihead_attention: {ROW, "attention_over"},
    a_list_of_heads: {ROW},
    encoder_layer_0: {HEADS},
    query_key_value: {ROW, HEADS},
    scale_and_shift: {ROW, HEADS},
}


@pytest.mark.parametrize("names", ASKED, ids=lambda names: names.__name__)
@pytest.mark.sample(5)
def test_they_are_read_and_ask_what_no_tensor_tells(names: Callable[[], Shapes], tmp_path: Path) -> None:
    dice = torch.Generator().manual_seed(0)
    torch.save({name: tensor(name, shape, dice) for name, shape in names().items()}, tmp_path / "model.pt")
    with pytest.raises(UnansweredError) as caught:
        load(tmp_path / "model.pt")
    left = [q for q in caught.value.questions if q.name not in caught.value.answers and not q.optional]
    assert {question.name for question in left if question.usual is None} == ASKED[names]
    more = MORE.get(names, set())
    insisting = {question.name for question in left if question.usual is not None}
    masked = {"causal"} if any(question.name == "bos_id" for question in caught.value.questions) else set()
    own = (
        set() if names is gpt2_around_multihead_attention else {"softmax", "qk_norm"}
    )  # of attention, which PyTorch fixes
    assert insisting - {"logit_scale"} == (CONVENTIONS | more | masked | own) - ASKED[names]
    opened = load(tmp_path / "model.pt", **{question.name: question.possible[0] for question in left})
    assert ("logit_scale" in insisting) is opened.report.has_head
    both = opened.model.config.architecture == "encoder-decoder"
    logits = opened.trace(ids=[1, 2, 3], **({"target_ids": [1, 2]} if both else {})).logits
    assert logits.isfinite().all()
    said = " ".join(map(str, opened.report.assumptions))
    assert ("`transformers` gives such names to LLaMA" in said) is (names is final_layer_norm_of_a_layer)
    assert not {fate.fate for fate in opened.report.tensors} & {"missing", "wrong shape"}
