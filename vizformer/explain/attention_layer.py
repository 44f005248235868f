"""Multi-head attention over all positions and heads at once, from the projections to the output."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.explain import latex, position_bias_steps, qk_norms, rope_steps
from vizformer.explain.attention_numbers import AttentionNumbers, joined_heads
from vizformer.explain.softmax_steps import own_scale_text
from vizformer.explain.step import Contraction, Made, Maker, Operand, Proof, Step
from vizformer.explain.sublayer import (
    KEYS,
    KEYS_OF_HEADS,
    MAPS,
    MATRIX,
    QUERIES_OF_HEADS,
    ROWS,
    add_and_norm,
    bias_of,
    entry,
    in_words,
    linear_inputs,
    linear_step,
    norm_before,
)
from vizformer.messages import N_, Message


def projections(at: AttentionNumbers) -> list[Step]:
    """The steps from a sublayer's input to its queries, keys and values."""
    anchor = anchor_of(at)
    found = {name: joined_heads(t) for name, t in at.recomputed.items()}
    recorded = {name: at.recorded(name).transpose(0, 1).flatten(1) for name in "qkv"}
    terms = {name: _rows(at.terms(name)) for name in "qkv"}
    proofs = {
        name: Proof.compare(anchor, found[name], recorded[name], at.is_last(name, ""), terms=terms[name])
        for name in "qkv"
    }
    steps = norm_before(at, replace(proofs["q"], direct=False))
    steps += _from_both(at, proofs) if at.site.is_cross else [_packed(at, anchor, found, recorded, terms)]
    steps.append(_heads(at, anchor))
    q, k = (Proof.compare(anchor, at.recomputed[name], at.recorded(name)) for name in "qk")
    changed = worse(q, k)
    if at.attention.q_norm is not None:
        steps.append(qk_norms.layer_step(at, replace(changed, direct=at.is_last("q", "_normed"))))
    if at.rotation is not None:
        steps.append(rope_steps.layer_step(at, changed))
    return steps


def anchor_of(at: AttentionNumbers) -> Message:
    return N_("q, k and v recorded in {place}", place=in_words(at.site.name))


def _packed(
    at: AttentionNumbers,
    anchor: Message,
    found: dict[str, ndarray],
    recorded: dict[str, torch.Tensor],
    terms: dict[str, ndarray],
) -> Step:
    """Self-attention: the queries, keys and values in one product."""
    x, linears = at.read, {name.upper(): at.linear(name) for name in "qkv"}
    weights = np.concatenate([at.weight(name) for name in "qkv"], axis=1)
    biased = at.attention.W_Q.bias is not None
    bias = np.concatenate([bias_of(linear) for linear in linears.values()]) if biased else None
    packed = np.concatenate([joined_heads(at.after_step(name)) for name in "qkv"], axis=1)
    more, plus, plus_code = (
        ("b = torch.cat([b_Q, b_K, b_V])\n", r" + [b_Q \mid b_K \mid b_V]", " + b") if biased else ("",) * 3
    )
    return Step(
        at.key("packed"),
        N_("One product for Q, K and V"),
        N_(
            "The three matrices stand side by side, so that one product [{n} × {d}] · [{d} × {width}] gives all three.",
            n=len(x),
            d=x.shape[1],
            width=weights.shape[1],
        ),
        rf"[Q \mid K \mid V] = X\,[W_Q \mid W_K \mid W_V]{plus}",
        entry("Q", x[0], weights[:, 0], None if bias is None else float(bias[0]), packed[0, 0]),
        r"[Q \mid K \mid V]",
        packed,
        f"W = torch.cat([W_Q, W_K, W_V], dim=1)\n{more}packed = x @ W{plus_code}",
        Proof.compare(
            anchor,
            np.concatenate(list(found.values()), axis=1),
            torch.cat(list(recorded.values()), dim=1),
            at.is_last("q", ""),
            terms=np.concatenate([np.broadcast_to(terms[name], found[name].shape) for name in "qkv"], axis=1),
        ),
        operands=(
            Operand("X", N_("the input, one row per token"), x, ROWS),
            Operand("W", N_("the three matrices side by side"), weights, MATRIX),
        ),
        contraction=Contraction(x, weights, bias),
        axes=ROWS,
        inputs={name: tensor for letter in linears for name, tensor in linear_inputs(linears[letter], letter).items()},
    )


def _from_both(at: AttentionNumbers, proofs: dict[str, Proof]) -> list[Step]:
    """Cross-attention: the queries of the decoder's rows, the keys and values of the encoder's."""
    text = N_("They come from the encoder output: its {n} rows, not the decoder's, are projected.", n=len(at.source))
    memory = N_("the encoder's output, one row per token")
    steps = []
    for name, title, said, symbol, variable, what, axes in (
        (
            "q",
            N_("Queries from the decoder"),
            N_("In cross-attention the queries come from the decoder: its rows are projected."),
            "X",
            "x",
            N_("the decoder's rows"),
            ROWS,
        ),
        ("k", N_("Keys from the encoder"), text, "M", "memory", memory, KEYS),
        ("v", N_("Values from the encoder"), text, "M", "memory", memory, KEYS),
    ):
        letter = name.upper()
        steps.append(
            linear_step(
                at.maker(proofs[name], axes),
                name,
                title,
                said,
                (letter, symbol),
                at.rows(name),
                at.linear(name),
                letter,
                joined_heads(at.after_step(name)),
                (name, variable),
                N_("the matrix W_{letter}", letter=letter),
                Operand(symbol, what, at.rows(name), axes),
                inputs={} if name == "q" else {"memory": at.trace.residual(at.site.source)},
            )
        )
    return steps


def _heads(at: AttentionNumbers, anchor: Message) -> Step:
    attention, n_q = at.attention, len(at.x)
    h, d_head = attention.n_heads, attention.d_head
    d, kv = h * d_head, attention.n_kv_heads * d_head
    split = "" if at.site.is_cross else f"q, k, v = packed.split([{d}, {kv}, {kv}], dim=-1)\n"
    q, k, v = (at.after_step(name) for name in "qkv")
    terms = at.terms("q")
    return Step(
        at.key("heads"),
        N_("Split into heads"),
        N_(
            "Nothing is computed: each row of {d} numbers is cut into {h} pieces of {d_head}, and the heads move to the "
            "front.",
            d=d,
            h=h,
            d_head=d_head,
        ),
        r"[b, n, d] \to [b, n, h, d_\mathrm{head}] \to [b, h, n, d_\mathrm{head}]",
        rf"[1, {n_q}, {d}] \to [1, {n_q}, {h}, {d_head}] \to [1, {h}, {n_q}, {d_head}]",
        "Q",
        q,
        f"{split}q, k, v = (t.unflatten(-1, (-1, {d_head})).transpose(0, 1) for t in (q, k, v))",
        Proof.compare(
            anchor,
            at.recomputed["q"],
            at.recorded("q"),
            at.is_last("q", ""),
            terms=0.0 if terms is None else terms,
        ),
        axes=QUERIES_OF_HEADS,
        also=(
            Made("k", Operand("K", N_("the keys, head by head"), k, KEYS_OF_HEADS)),
            Made("v", Operand("V", N_("the values, head by head"), v, KEYS_OF_HEADS)),
        ),
        meaning=N_("the queries, head by head"),
    )


def _rows(terms: Float[ndarray, "h n d_head"] | None) -> ndarray:
    return np.zeros(()) if terms is None else joined_heads(terms)


def worse(first: Proof, second: Proof) -> Proof:
    """The joint proof of two tensors: the larger difference; it holds if both hold."""
    return replace(first, difference=max(first.difference, second.difference), holds=first.holds and second.holds)


def attention_sublayer(at: AttentionNumbers) -> Iterator[Step]:
    """Multi-head attention as `nn.MultiheadAttention` does it: packed projections, heads, scores, softmax, concat, W_O."""
    yield from projections(at)
    h, d_head, n_q, n_k = at.attention.n_heads, at.attention.d_head, len(at.x), len(at.source)
    if at.group > 1:
        yield _shared(at)
    fused = torch.stack([at.fused(head) for head in range(h)])
    anchor = N_("z from the model's own attention: {place}", place=in_words(at.site.name))
    as_fused = Proof.compare(anchor, at.z_recomputed, fused, terms=0.0 if at.z_terms is None else at.z_terms)
    make, w = at.maker(replace(as_fused, direct=False), MAPS), at.widened
    yield _scores(at, make)
    if at.distances is not None:
        yield position_bias_steps.layer_step(at, make)
    if at.mask is not None:
        tilde = r"\tilde " * (at.distances is not None)
        yield make(
            "mask",
            N_("Add the mask"),
            N_(
                "-∞ where the mask blocks a key: {n} of {all} cells, the same in every head.",
                n=int(np.isneginf(at.masked[0]).sum()),
                all=n_q * n_k,
            ),
            rf"S' = {tilde}S + M, \qquad M_{{ij}} \in \{{0, -\infty\}}",
            rf"S'_{{0,{n_k - 1}}} = {latex.number(at.masked[0, 0, -1])}",
            "S'",
            at.masked,
            "scores = scores + mask",
            inputs={"mask": at.mask},
        )
    first = at.weights[0, 0]
    yield make(
        "weights",
        N_("Softmax, row by row"),
        N_("Each row becomes positive and sums to 1."),
        r"A_{ij} = \frac{e^{S_{ij}}}{\sum_{j'} e^{S_{ij'}}}",
        rf"\sum_j A_{{0,j}} = {latex.sum_of(first)} = {latex.number(first.sum())}",
        "A",
        at.weights,
        "weights = torch.softmax(scores, dim=-1)",
    )
    z = at.z_recomputed
    yield make(
        "z",
        N_("Mix the values"),
        N_("In each head, every query gets the sum of the values, each times its weight."),
        r"Z = A V",
        rf"Z_{{0,0}} = {latex.sum_of_products(first, at.v[0, :, 0])} = {latex.number(z[0, 0, 0])}",
        "Z",
        z,
        "z = (weights @ v.float()).to(v.dtype)" if w else "z = weights @ v",
        proof=as_fused,
        axes=QUERIES_OF_HEADS,
    )
    through = at.maker(at.proof(at.out, direct=False))
    yield through(
        "concat",
        N_("Concatenate the heads"),
        N_("Nothing is computed: the pieces go back into one row."),
        r"[b, h, n, d_\mathrm{head}] \to [b, n, d]",
        rf"[1, {h}, {n_q}, {d_head}] \to [1, {n_q}, {h * d_head}]",
        r"\mathrm{concat}",
        at.joined,
        "joined = z.transpose(0, 1).flatten(1)",
        axes=ROWS,
    )
    yield linear_step(
        through,
        "out",
        N_("Output projection: mix the heads with W_O"),
        N_("One more matrix, W_O, mixes the outputs of all heads."),
        ("O", r"\mathrm{concat}"),
        at.joined,
        at.attention.W_O,
        "O",
        at.out,
        ("out", "joined"),
        N_("the matrix W_{letter}", letter="O"),
    )
    yield from add_and_norm(at, at.out)


def _shared(at: AttentionNumbers) -> Step:
    """Keys and values repeated for the query heads that share them."""
    h, kv, group = at.attention.n_heads, at.attention.n_kv_heads, at.group
    k, v = (torch.repeat_interleave(t, group, dim=0) for t in (at.record.k, at.record.v))
    proof = worse(Proof.compare(anchor_of(at), at.k, k), Proof.compare(anchor_of(at), at.v, v))
    return at.maker(proof, KEYS_OF_HEADS)(
        "shared",
        N_("Share keys and values"),
        N_(
            "There are {h} heads of queries but {kv} of keys and values: {group} query heads in a row use the same one "
            "(grouped-query attention). The KV cache is {group} times smaller.",
            h=h,
            kv=kv,
            group=group,
        ),
        r"K_h \leftarrow K_{\lfloor h / g \rfloor}, \qquad V_h \leftarrow V_{\lfloor h / g \rfloor}",
        rf"g = {h} / {kv} = {group}",
        "K",
        at.k,
        f"k, v = (t.repeat_interleave({group}, dim=0) for t in (k, v))",
        also=(Made("v", Operand("V", N_("the values, one for each query head"), at.v, KEYS_OF_HEADS)),),
        meaning=N_("the keys, one for each query head"),
    )


def _scores(at: AttentionNumbers, make: Maker) -> Step:
    own, d_head, n_q, n_k = at.attention.own_scale, at.attention.d_head, len(at.x), len(at.source)
    products, w = latex.sum_of_products(at.q[0, 0], at.k[0, 0]), at.widened
    if own is None:
        text = N_("In each head, {n_q} × {n_k} dot products, divided by √{d_head}.", n_q=n_q, n_k=n_k, d_head=d_head)
        formula, live = r"S = \frac{Q K^\top}{\sqrt{d_\mathrm{head}}}", rf"\frac{{{products}}}{{\sqrt{{{d_head}}}}}"
        code = f"/ math.sqrt({d_head})"
    else:
        text = N_("In each head, {n_q} × {n_k} dot products. {scale}", n_q=n_q, n_k=n_k, scale=own_scale_text(own))
        formula, live = r"S = c\,Q K^\top" if own != 1 else r"S = Q K^\top", rf"{latex.number(own)} \cdot ({products})"
        code = f"* {own!r}"
    return make(
        "scores",
        N_("Scores: every query with every key"),
        text,
        formula,
        rf"S_{{0,0}} = {live} = {latex.number(at.scores[0, 0, 0])}",
        "S",
        at.scores,
        f"scores = q{w} @ k{w}.transpose(-2, -1) {code}",
    )
