"""Multi-head attention over all positions and heads at once."""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.explain import latex
from vizformer.explain.arrays import float64, is_half, set_cells, softmax, stored
from vizformer.explain.norms import normalise
from vizformer.explain.position_bias import Buckets, Slopes, relative_positions
from vizformer.explain.position_bias_steps import layer_step
from vizformer.explain.qk_norm_steps import layer_step as norm_step
from vizformer.explain.qk_norm_steps import normalise_both
from vizformer.explain.rope import turn
from vizformer.explain.rope_steps import angle_code, divisor_input, divisor_operand, formula
from vizformer.explain.site_words import in_words
from vizformer.explain.softmax_steps import own_scale_text
from vizformer.explain.step import Contraction, Made, Operand, Proof, Step, sizes
from vizformer.explain.sublayer import (
    MAPS,
    ROWS,
    Sublayer,
    add_and_norm,
    bias_of,
    entry,
    linear_code,
    linear_inputs,
    norm_before,
)
from vizformer.messages import N_
from vizformer.model.attention import Attention
from vizformer.model.norm import Norm


def attention_sublayer(
    at: Sublayer,
    attention: Attention,
    norm: Norm,
    site: str,
    source: str | None,
    angles: ndarray | None = None,
    distances: Slopes | Buckets | None = None,
    divided: ndarray | None = None,
    theta: float = 10_000.0,
) -> list[Step]:
    """Multi-head attention as `nn.MultiheadAttention` does it: packed projections, heads, scores, softmax, concat, W_O.

    `source` names the residual stream that keys and values come from; None is the sublayer's own input.  `angles` are
    those by which queries and keys are turned, where positions are rotary, `theta` their base, `divided` what they were
    divided by for longer texts; `places` is what tells the scores distances.
    """
    record = at.trace[site]
    h, kv, d_head = attention.n_heads, attention.n_kv_heads, attention.d_head
    steps: list[Step] = []
    x = normalise(at.x, norm) if at.pre_norm else at.x
    memory = x if source is None else float64(at.trace.residual(source))
    W = {letter: float64(getattr(attention, f"W_{letter}").weight).T for letter in "QKV"}
    b = {letter: bias_of(getattr(attention, f"W_{letter}")) for letter in "QKV"}
    dtype, short = at.dtype, is_half(at.dtype)
    sources = {"Q": x, "K": memory, "V": memory}
    q, k, v = (stored(sources[letter] @ W[letter] + b[letter], dtype) for letter in "QKV")
    qh, kh, vh = (_heads(t, d_head) for t in (q, k, v))  # [h or kv, n, d_head]
    normed = normalise_both(attention, qh, kh)
    turned_q, turned_k = normed if angles is None else (turn(t, angles, dtype) for t in normed)
    turned_q, turned_k, vh = (
        set_cells(at.trace, f"{site}.{name}", t) for name, t in (("q", turned_q), ("k", turned_k), ("v", vh))
    )
    final_q, final_k, v = (_joined(t) for t in (turned_q, turned_k, vh))
    as_projected = angles is None and attention.q_norm is None  # then q and k are the model's own already here
    if as_projected:
        q, k, qh, kh = final_q, final_k, turned_q, turned_k
    if angles is None:
        normed = turned_q, turned_k
    recorded_qkv = [t.transpose(0, 1).flatten(1) for t in (record.q, record.k, record.v)]
    terms = [
        sizes(sources[letter], W[letter], b[letter]) if short and (as_projected or letter == "V") else np.zeros(())
        for letter in "QKV"
    ]
    anchor = N_("q, k and v recorded in {place}", place=in_words(site))
    n_q, n_k, d = len(x), len(memory), h * d_head
    if at.pre_norm:
        steps.append(
            norm_before(at, norm, Proof.compare(anchor, final_q, recorded_qkv[0], direct=False, terms=terms[0]))
        )
    if source is None:
        packed, weights, biases = (
            np.concatenate(parts, axis=1)
            for parts in ((q, k, v), tuple(W.values()), tuple(bias[None] for bias in b.values()))
        )
        steps.append(
            Step(
                at.key("packed"),
                N_("One product for Q, K and V"),
                N_(
                    "The three matrices stand side by side, so that one product [{n} × {d}] · [{d} × {width}] gives all three.",
                    n=n_q,
                    d=x.shape[1],
                    width=weights.shape[1],
                ),
                r"[Q \mid K \mid V] = X\,[W_Q \mid W_K \mid W_V] + [b_Q \mid b_K \mid b_V]",
                entry("Q", x[0], W["Q"][:, 0], b["Q"][0], q[0, 0]),
                (
                    Operand("X", N_("the input, one row per token"), x, ROWS),
                    Operand("W", N_("the three matrices side by side"), weights, ("features", "features")),
                ),
                r"[Q \mid K \mid V]",
                packed,
                "W = torch.cat([W_Q, W_K, W_V], dim=1)\n"
                + (
                    "packed = x @ W"
                    if attention.W_Q.bias is None
                    else "b = torch.cat([b_Q, b_K, b_V])\npacked = x @ W + b"
                ),
                "packed",
                Proof.compare(
                    anchor,
                    np.concatenate((final_q, final_k, v), axis=1),
                    torch.cat(recorded_qkv, dim=1),
                    direct=as_projected,
                    terms=_beside(terms, (final_q, final_k, v)),
                ),
                contraction=Contraction(x, weights, biases[0]),
                axes=ROWS,
                inputs={
                    name: tensor
                    for letter in "QKV"
                    for name, tensor in linear_inputs(getattr(attention, f"W_{letter}"), letter).items()
                },
            )
        )
        split = f"q, k, v = packed.split([{d}, {kv * d_head}, {kv * d_head}], dim=-1)"
    else:
        pairs = {"q": ("Q", x, q, "x"), "k": ("K", memory, k, "memory"), "v": ("V", memory, v, "memory")}
        for index, (name, (letter, rows, result, variable)) in enumerate(pairs.items()):
            linear = getattr(attention, f"W_{letter}")
            reads = {} if name == "q" else {"memory": at.trace.residual(source)}
            steps.append(
                Step(
                    at.key(name),
                    N_("Queries from the decoder")
                    if name == "q"
                    else N_("Keys from the encoder")
                    if name == "k"
                    else N_("Values from the encoder"),
                    N_("In cross-attention the decoder asks: its rows become the queries.")
                    if name == "q"
                    else N_("The encoder's output answers: its {n} rows, not the decoder's, are projected.", n=n_k),
                    rf"{letter} = {'X' if name == 'q' else 'M'}\,W_{letter} + b_{letter}",
                    entry(letter, rows[0], W[letter][:, 0], b[letter][0], result[0, 0]),
                    (
                        Operand(
                            "X" if name == "q" else "M",
                            N_("the decoder's rows") if name == "q" else N_("the encoder's output, one row per token"),
                            rows,
                            ROWS if name == "q" else ("keys", "features"),
                        ),
                        Operand(
                            f"W_{letter}",
                            N_("the matrix W_{letter}", letter=letter),
                            W[letter],
                            ("features", "features"),
                        ),
                    ),
                    letter,
                    result,
                    f"{name} = {variable}{linear_code(linear, letter)}",
                    name,
                    Proof.compare(
                        anchor,
                        (final_q, final_k, v)[index],
                        recorded_qkv[index],
                        direct=as_projected or name == "v",
                        terms=terms[index],
                    ),
                    contraction=Contraction(rows, W[letter], b[letter]),
                    axes=ROWS if name == "q" else ("keys", "features"),
                    inputs=reads | linear_inputs(linear, letter),
                )
            )
        split = ""
    reshape = f"q, k, v = (t.unflatten(-1, (-1, {d_head})).transpose(0, 1) for t in (q, k, v))"
    steps.append(
        Step(
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
            (),
            "Q",
            qh,
            "\n".join(filter(None, (split, reshape))),
            "q",
            Proof.compare(anchor, turned_q, record.q, direct=as_projected, terms=_by_head(terms[0], d_head)),
            axes=("heads", "queries", "features"),
            also=(
                Made("k", Operand("K", N_("the keys, head by head"), kh, ("heads", "keys", "features"))),
                Made("v", Operand("V", N_("the values, head by head"), vh, ("heads", "keys", "features"))),
            ),
            meaning=N_("the queries, head by head"),
        )
    )
    changed = _worse(Proof.compare(anchor, turned_q, record.q), Proof.compare(anchor, turned_k, record.k))
    if attention.q_norm is not None:
        steps.append(norm_step(at, attention, qh, normed, replace(changed, direct=angles is None)))
    if angles is not None:
        cos, sin = latex.factor(np.cos(angles[-1, 0])), latex.factor(np.sin(angles[-1, 0]))
        last, half = n_q - 1, angles.shape[1]
        hat, partial, given = r"\hat " if attention.q_norm is not None else "", 2 * half < d_head, normed[0]
        steps.append(
            Step(
                at.key("turned"),
                N_("Turn queries and keys by their positions"),
                N_(
                    "In every head, pair m of row i (numbers m and m + {half}) is turned by an angle that grows with i and "
                    "shrinks with m.",
                    half=half,
                )
                if not partial
                else N_(
                    "In every head, only the first {dims} numbers of a row are turned: pair m of row i (numbers m and m + {half}) "
                    "by an angle that grows with i and shrinks with m. The other {rest} numbers stay as they are.",
                    dims=2 * half,
                    half=half,
                    rest=d_head - 2 * half,
                ),
                formula(f"{hat}q", "q", "i", partial, divided is not None),
                rf"Q'_{{0,{last},0}} = {latex.number(given[0, -1, 0])} \cdot {cos} - {latex.factor(given[0, -1, half])} \cdot "
                rf"{sin} = {latex.number(turn(given[0, -1], angles[-1])[0])}",
                (
                    Operand(r"\Phi", N_("the angle of each pair, in radians"), angles, ROWS),
                    *(() if divided is None else (divisor_operand(divided),)),
                ),
                "Q'",
                turned_q,
                angle_code(theta, half, f"torch.arange({n_q})[:, None]", divided)
                + "\n"
                + (
                    "q, k = (torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1) "
                    "for a, b in (t.chunk(2, dim=-1) for t in (q, k)))"
                    if not partial
                    else "q, k = (torch.cat([a * cos - b * sin, a * sin + b * cos, rest], dim=-1) "
                    f"for a, b, rest in (t.tensor_split([{half}, {2 * half}], dim=-1) for t in (q, k)))"
                ),
                "q",
                changed,
                axes=("heads", "queries", "features"),
                inputs=divisor_input(divided),
                also=(Made("k", Operand("K'", N_("the keys, turned"), turned_k, ("heads", "keys", "features"))),),
                meaning=N_("the queries, turned"),
            )
        )
    qh, kh = turned_q, turned_k
    if short:  # on from what the model wrote
        qh, kh, vh = (float64(t) for t in (record.q, record.k, record.v))
    if kv != h:
        kh, vh = np.repeat(kh, h // kv, axis=0), np.repeat(vh, h // kv, axis=0)
        shared = f"k, v = (t.repeat_interleave({h // kv}, dim=0) for t in (k, v))"
        own_kv = [torch.repeat_interleave(t, h // kv, dim=0) for t in (record.k, record.v)]
        same = _worse(Proof.compare(anchor, kh, own_kv[0]), Proof.compare(anchor, vh, own_kv[1]))
        steps.append(
            Step(
                at.key("shared"),
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
                (),
                "K",
                kh,
                shared,
                "k",
                same,
                axes=("heads", "keys", "features"),
                also=(
                    Made(
                        "v", Operand("V", N_("the values, one for each query head"), vh, ("heads", "keys", "features"))
                    ),
                ),
                meaning=N_("the keys, one for each query head"),
            )
        )
    own = attention.own_scale
    scores = qh @ kh.transpose(0, 2, 1) * record.scale  # [h, n_q, n_k]
    bias = None if record.bias is None else float64(record.bias)
    placed = scores if distances is None else scores + distances.bias(relative_positions(n_q))
    masked = placed if bias is None else placed + bias
    weights_ = softmax(masked)
    z = stored(weights_ @ vh, dtype)  # [h, n_q, d_head]
    fused = torch.stack([record.z(head) for head in range(h)])
    z_anchor = N_("z from the model's own fused attention: {place}", place=in_words(site))
    as_fused = Proof.compare(z_anchor, z, fused, terms=weights_ @ np.abs(vh) if short else 0.0)
    through_z, w = replace(as_fused, direct=False), ".float()" if short else ""
    steps.append(
        Step(
            at.key("scores"),
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
            (),
            "S",
            scores,
            f"scores = q{w} @ k{w}.transpose(-2, -1) " + (f"/ math.sqrt({d_head})" if own is None else f"* {own!r}"),
            "scores",
            through_z,
            axes=MAPS,
        )
    )
    if distances is not None:
        steps.append(layer_step(at, distances, scores, placed, through_z))
    tilde = "" if distances is None else r"\tilde "
    blocked = np.isneginf(masked)
    if bias is not None:
        steps.append(
            Step(
                at.key("mask"),
                N_("Add the mask"),
                N_(
                    "-∞ where a query may not look: {n} of {all} cells, the same in every head.",
                    n=int(blocked[0].sum()),
                    all=n_q * n_k,
                ),
                rf"S' = {tilde}S + M, \qquad M_{{ij}} \in \{{0, -\infty\}}",
                rf"S'_{{0,{n_k - 1}}} = {latex.number(masked[0, 0, -1])}",
                (),
                "S'",
                masked,
                "scores = scores + mask",
                "scores",
                through_z,
                axes=MAPS,
                inputs={} if record.bias is None else {"mask": record.bias},
            )
        )
    steps.append(
        Step(
            at.key("weights"),
            N_("Softmax, row by row"),
            N_("Each row becomes positive and sums to 1."),
            r"A_{ij} = \frac{e^{S_{ij}}}{\sum_{j'} e^{S_{ij'}}}",
            rf"\sum_j A_{{0,j}} = {latex.sum_of(weights_[0, 0])} = {latex.number(weights_[0, 0].sum())}",
            (),
            "A",
            weights_,
            "weights = torch.softmax(scores, dim=-1)",
            "weights",
            through_z,
            axes=MAPS,
        )
    )
    steps.append(
        Step(
            at.key("z"),
            N_("Mix the values"),
            N_("In each head, every query gets the sum of the values, each times its weight."),
            r"Z = A V",
            rf"Z_{{0,0}} = {latex.sum_of_products(weights_[0, 0], vh[0, :, 0])} = {latex.number(z[0, 0, 0])}",
            (),
            "Z",
            z,
            "z = (weights @ v.float()).to(v.dtype)" if short else "z = weights @ v",
            "z",
            as_fused,
            axes=("heads", "queries", "features"),
        )
    )
    joined = _joined(float64(fused) if short else z)
    W_O, b_O = float64(attention.W_O.weight).T, bias_of(attention.W_O)
    out = stored(joined @ W_O + b_O, dtype)
    through = replace(at.proof(norm, out), direct=False)
    steps.append(
        Step(
            at.key("concat"),
            N_("Put the heads side by side"),
            N_("Nothing is computed: the pieces go back into one row."),
            r"[b, h, n, d_\mathrm{head}] \to [b, n, d]",
            rf"[1, {h}, {n_q}, {d_head}] \to [1, {n_q}, {d}]",
            (),
            r"\mathrm{concat}",
            joined,
            "joined = z.transpose(0, 1).flatten(1)",
            "joined",
            through,
            axes=ROWS,
        )
    )
    steps.append(
        Step(
            at.key("out"),
            N_("Mix the heads with W_O"),
            N_("One more matrix lets the heads' findings meet."),
            r"O = \mathrm{concat}\,W_O + b_O",
            entry("O", joined[0], W_O[:, 0], b_O[0], out[0, 0]),
            (Operand("W_O", N_("the matrix W_{letter}", letter="O"), W_O, ("features", "features")),),
            "O",
            out,
            f"out = joined{linear_code(attention.W_O, 'O')}",
            "out",
            through,
            contraction=Contraction(joined, W_O, b_O),
            axes=ROWS,
            inputs=linear_inputs(attention.W_O, "O"),
        )
    )
    return [*steps, *add_and_norm(at, norm, out)]


def _heads(rows: Float[ndarray, "n width"], d_head: int) -> Float[ndarray, "h n d_head"]:
    return rows.reshape(len(rows), -1, d_head).transpose(1, 0, 2)


def _joined(heads: Float[ndarray, "h n d_head"]) -> Float[ndarray, "n width"]:
    return heads.transpose(1, 0, 2).reshape(heads.shape[1], -1)


def _by_head(terms: ndarray, d_head: int) -> ndarray:
    return _heads(terms, d_head) if terms.ndim else terms


def _beside(terms: list[ndarray], parts: tuple[ndarray, ...]) -> ndarray:
    """The terms of q, k and v side by side, as in the packed product."""
    return np.concatenate([np.broadcast_to(t, part.shape) for t, part in zip(terms, parts, strict=True)], axis=1)


def _worse(first: Proof, second: Proof) -> Proof:
    """One proof of two tensors."""
    return replace(first, difference=max(first.difference, second.difference), holds=first.holds and second.holds)
