"""Multi-head attention over all positions and heads at once."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy import ndarray

from vizformer.explain import latex
from vizformer.explain.arrays import float64, is_half, softmax, stored
from vizformer.explain.layer_projections import joined_heads, projections, worse
from vizformer.explain.position_bias_steps import layer_step
from vizformer.explain.position_terms import Buckets, Slopes, relative_positions
from vizformer.explain.site_words import in_words
from vizformer.explain.softmax_steps import own_scale_text
from vizformer.explain.step import Made, Operand, Proof, Step
from vizformer.explain.sublayer import MAPS, ROWS, Sublayer, through_output
from vizformer.messages import N_
from vizformer.model.attention import Attention


def attention_sublayer(
    at: Sublayer,
    attention: Attention,
    site: str,
    source: str | None,
    angles: ndarray | None = None,
    distances: Slopes | Buckets | None = None,
    slowed: ndarray | None = None,
    theta: float = 10_000.0,
) -> Iterator[Step]:
    """Multi-head attention as `nn.MultiheadAttention` does it: packed projections, heads, scores, softmax, concat, W_O.

    `source` names the residual stream that keys and values come from; None is the sublayer's own input.  `angles` are
    the rotary angles of queries and keys, `theta` is their base, `slowed` are their divisors for longer texts;
    `distances` is the position bias of ALiBi or T5.
    """
    record = at.trace[site]
    h, kv, d_head = attention.n_heads, attention.n_kv_heads, attention.d_head
    dtype, short = at.dtype, is_half(at.dtype)
    made, qh, kh, vh = projections(at, attention, site, source, angles, slowed, theta)
    yield from made
    anchor = N_("q, k and v recorded in {place}", place=in_words(site))
    n_q, n_k = qh.shape[1], kh.shape[1]
    if short:  # half precision goes on from the recorded tensors
        qh, kh, vh = (float64(t) for t in (record.q, record.k, record.v))
    if kv != h:
        kh, vh = np.repeat(kh, h // kv, axis=0), np.repeat(vh, h // kv, axis=0)
        shared = f"k, v = (t.repeat_interleave({h // kv}, dim=0) for t in (k, v))"
        own_kv = [torch.repeat_interleave(t, h // kv, dim=0) for t in (record.k, record.v)]
        same = worse(Proof.compare(anchor, kh, own_kv[0]), Proof.compare(anchor, vh, own_kv[1]))
        yield at.maker(same, ("heads", "keys", "features"))(
            "shared",
            N_("Share keys and values"),
            N_(
                "There are {h} heads of queries but {kv} of keys and values: {group} query heads in a row use the same one "
                "(grouped-query attention). The KV cache is {group} times smaller.",
                h=h,
                kv=kv,
                group=h // kv,
            ),
            r"K_h \leftarrow K_{\lfloor h / g \rfloor}, \qquad V_h \leftarrow V_{\lfloor h / g \rfloor}",
            rf"g = {h} / {kv} = {h // kv}",
            "K",
            kh,
            shared,
            also=(
                Made("v", Operand("V", N_("the values, one for each query head"), vh, ("heads", "keys", "features"))),
            ),
            meaning=N_("the keys, one for each query head"),
        )
    own = attention.own_scale
    scores = qh @ kh.transpose(0, 2, 1) * record.scale  # [h, n_q, n_k]
    bias = None if record.bias is None else float64(record.bias)
    placed = scores if distances is None else scores + distances.bias(relative_positions(n_q))
    masked = placed if bias is None else placed + bias
    weights_ = softmax(masked)
    z = stored(weights_ @ vh, dtype)  # [h, n_q, d_head]
    fused = torch.stack([record.z(head) for head in range(h)])
    z_anchor = N_("z from the model's own attention: {place}", place=in_words(site))
    as_fused = Proof.compare(z_anchor, z, fused, terms=weights_ @ np.abs(vh) if short else 0.0)
    through_z, w = replace(as_fused, direct=False), ".float()" if short else ""
    make = at.maker(through_z, MAPS)
    yield make(
        "scores",
        N_("Scores: every query with every key"),
        N_("In each head, {n_q} × {n_k} dot products, divided by √{d_head}.", n_q=n_q, n_k=n_k, d_head=d_head)
        if own is None
        else N_("In each head, {n_q} × {n_k} dot products. {scale}", n_q=n_q, n_k=n_k, scale=own_scale_text(own)),
        r"S = \frac{Q K^\top}{\sqrt{d_\mathrm{head}}}"
        if own is None
        else r"S = c\,Q K^\top"
        if own != 1
        else r"S = Q K^\top",
        (
            rf"S_{{0,0}} = \frac{{{latex.sum_of_products(qh[0, 0], kh[0, 0])}}}{{\sqrt{{{d_head}}}}} = "
            if own is None
            else rf"S_{{0,0}} = {latex.number(own)} \cdot ({latex.sum_of_products(qh[0, 0], kh[0, 0])}) = "
        )
        + latex.number(scores[0, 0, 0]),
        "S",
        scores,
        f"scores = q{w} @ k{w}.transpose(-2, -1) " + (f"/ math.sqrt({d_head})" if own is None else f"* {own!r}"),
    )
    if distances is not None:
        yield layer_step(at, distances, scores, placed, through_z)
    tilde = r"\tilde " if distances is not None else ""
    blocked = np.isneginf(masked)
    if bias is not None:
        yield make(
            "mask",
            N_("Add the mask"),
            N_(
                "-∞ where the mask blocks a key: {n} of {all} cells, the same in every head.",
                n=int(blocked[0].sum()),
                all=n_q * n_k,
            ),
            rf"S' = {tilde}S + M, \qquad M_{{ij}} \in \{{0, -\infty\}}",
            rf"S'_{{0,{n_k - 1}}} = {latex.number(masked[0, 0, -1])}",
            "S'",
            masked,
            "scores = scores + mask",
            inputs={} if record.bias is None else {"mask": record.bias},
        )
    yield make(
        "weights",
        N_("Softmax, row by row"),
        N_("Each row becomes positive and sums to 1."),
        r"A_{ij} = \frac{e^{S_{ij}}}{\sum_{j'} e^{S_{ij'}}}",
        rf"\sum_j A_{{0,j}} = {latex.sum_of(weights_[0, 0])} = {latex.number(weights_[0, 0].sum())}",
        "A",
        weights_,
        "weights = torch.softmax(scores, dim=-1)",
    )
    yield make(
        "z",
        N_("Mix the values"),
        N_("In each head, every query gets the sum of the values, each times its weight."),
        r"Z = A V",
        rf"Z_{{0,0}} = {latex.sum_of_products(weights_[0, 0], vh[0, :, 0])} = {latex.number(z[0, 0, 0])}",
        "Z",
        z,
        "z = (weights @ v.float()).to(v.dtype)" if short else "z = weights @ v",
        proof=as_fused,
        axes=("heads", "queries", "features"),
    )
    joined = joined_heads(float64(fused) if short else z)
    through, out = through_output(at, attention.W_O, joined)
    yield make(
        "concat",
        N_("Concatenate the heads"),
        N_("Nothing is computed: the pieces go back into one row."),
        r"[b, h, n, d_\mathrm{head}] \to [b, n, d]",
        rf"[1, {h}, {n_q}, {d_head}] \to [1, {n_q}, {h * d_head}]",
        r"\mathrm{concat}",
        joined,
        "joined = z.transpose(0, 1).flatten(1)",
        proof=through,
        axes=ROWS,
    )
    yield from out
