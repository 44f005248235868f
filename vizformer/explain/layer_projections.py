"""Queries, keys and values of all positions and heads: projected, split into heads, normalised, turned."""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import nn

from vizformer.explain.arrays import float64, is_half, set_cells, stored
from vizformer.explain.qk_norms import layer_step as norm_step
from vizformer.explain.qk_norms import normalise_both
from vizformer.explain.rope import turn
from vizformer.explain.rope_steps import layer_step as rope_step
from vizformer.explain.site_words import in_words
from vizformer.explain.step import Contraction, Made, Operand, Proof, Step, sizes
from vizformer.explain.sublayer import ROWS, Sublayer, bias_of, entry, linear_code, linear_inputs, norm_before
from vizformer.messages import N_, Message
from vizformer.model.attention import Attention


def projections(
    at: Sublayer,
    attention: Attention,
    site: str,
    source: str | None,
    angles: ndarray | None,
    slowed: Float[ndarray, " pairs"] | None,
    theta: float,
) -> tuple[
    list[Step], Float[ndarray, "h n_q d_head"], Float[ndarray, "kv n_k d_head"], Float[ndarray, "kv n_k d_head"]
]:
    """The steps from a sublayer's input to its queries, keys and values, and these three, [heads, n, d_head] each.

    The arguments are those of `attention_sublayer`.
    """
    record = at.trace[site]
    h, kv, d_head = attention.n_heads, attention.n_kv_heads, attention.d_head
    steps: list[Step] = []
    x = at.read
    memory = x if source is None else float64(at.trace.residual(source))
    linears: dict[str, nn.Linear] = {letter: getattr(attention, f"W_{letter}") for letter in "QKV"}
    W = {letter: float64(linear.weight).T for letter, linear in linears.items()}
    b = {letter: bias_of(linear) for letter, linear in linears.items()}
    dtype, short = at.dtype, is_half(at.dtype)
    sources = {"Q": x, "K": memory, "V": memory}
    q, k, v = (stored(sources[letter] @ W[letter] + b[letter], dtype) for letter in "QKV")
    qh, kh, vh = (_heads(t, d_head) for t in (q, k, v))  # [h or kv, n, d_head]
    normed = normalise_both(attention, qh, kh)
    turned_q, turned_k = normed if angles is None else (turn(t, angles, dtype) for t in normed)
    turned_q, turned_k, vh = (
        set_cells(at.trace, f"{site}.{name}", t) for name, t in (("q", turned_q), ("k", turned_k), ("v", vh))
    )
    final_q, final_k, v = (joined_heads(t) for t in (turned_q, turned_k, vh))
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
    steps += norm_before(at, Proof.compare(anchor, final_q, recorded_qkv[0], direct=False, terms=terms[0]))
    parts = (final_q, final_k, v)
    if source is None:
        packed, weights, biases = (
            np.concatenate(three, axis=1)
            for three in ((q, k, v), tuple(W.values()), tuple(bias[None] for bias in b.values()))
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
                r"[Q \mid K \mid V]",
                packed,
                "W = torch.cat([W_Q, W_K, W_V], dim=1)\n"
                + (
                    "packed = x @ W"
                    if attention.W_Q.bias is None
                    else "b = torch.cat([b_Q, b_K, b_V])\npacked = x @ W + b"
                ),
                Proof.compare(
                    anchor,
                    np.concatenate(parts, axis=1),
                    torch.cat(recorded_qkv, dim=1),
                    direct=as_projected,
                    terms=_beside(terms, parts),
                ),
                operands=(
                    Operand("X", N_("the input, one row per token"), x, ROWS),
                    Operand("W", N_("the three matrices side by side"), weights, ("features", "features")),
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
            linear = linears[letter]
            reads = {} if name == "q" else {"memory": at.trace.residual(source)}
            title, text, answering = _said(name, n_k)
            steps.append(
                Step(
                    at.key(name),
                    title,
                    text,
                    rf"{letter} = {'X' if name == 'q' else 'M'}\,W_{letter} + b_{letter}",
                    entry(letter, rows[0], W[letter][:, 0], b[letter][0], result[0, 0]),
                    letter,
                    result,
                    f"{name} = {variable}{linear_code(linear, letter)}",
                    Proof.compare(
                        anchor,
                        parts[index],
                        recorded_qkv[index],
                        direct=as_projected or name == "v",
                        terms=terms[index],
                    ),
                    operands=(
                        Operand(
                            "X" if name == "q" else "M", answering, rows, ROWS if name == "q" else ("keys", "features")
                        ),
                        Operand(
                            f"W_{letter}",
                            N_("the matrix W_{letter}", letter=letter),
                            W[letter],
                            ("features", "features"),
                        ),
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
            "Q",
            qh,
            "\n".join(filter(None, (split, reshape))),
            Proof.compare(anchor, turned_q, record.q, direct=as_projected, terms=_by_head(terms[0], d_head)),
            axes=("heads", "queries", "features"),
            also=(
                Made("k", Operand("K", N_("the keys, head by head"), kh, ("heads", "keys", "features"))),
                Made("v", Operand("V", N_("the values, head by head"), vh, ("heads", "keys", "features"))),
            ),
            meaning=N_("the queries, head by head"),
        )
    )
    changed = worse(Proof.compare(anchor, turned_q, record.q), Proof.compare(anchor, turned_k, record.k))
    if attention.q_norm is not None:
        steps.append(norm_step(at, attention, qh, normed, replace(changed, direct=angles is None)))
    if angles is not None:
        normalised = attention.q_norm is not None
        steps.append(rope_step(at, normed[0], (turned_q, turned_k), angles, theta, slowed, changed, normed=normalised))
    return steps, turned_q, turned_k, vh


def _said(name: str, n: int) -> tuple[Message, Message, Message]:
    """Title and text of a cross-attention's projection step, and the rows that it reads."""
    if name == "q":
        text = N_("In cross-attention the queries come from the decoder: its rows are projected.")
        return N_("Queries from the decoder"), text, N_("the decoder's rows")
    text = N_("They come from the encoder output: its {n} rows, not the decoder's, are projected.", n=n)
    title = N_("Keys from the encoder") if name == "k" else N_("Values from the encoder")
    return title, text, N_("the encoder's output, one row per token")


def _heads(rows: Float[ndarray, "n width"], d_head: int) -> Float[ndarray, "h n d_head"]:
    return rows.reshape(len(rows), -1, d_head).transpose(1, 0, 2)


def joined_heads(heads: Float[ndarray, "h n d_head"]) -> Float[ndarray, "n width"]:
    """The heads of each row concatenated: [h, n, d_head] -> [n, h d_head]."""
    return heads.transpose(1, 0, 2).reshape(heads.shape[1], -1)


def _by_head(terms: ndarray, d_head: int) -> ndarray:
    return _heads(terms, d_head) if terms.ndim else terms


def _beside(terms: list[ndarray], parts: tuple[ndarray, ...]) -> ndarray:
    """The terms of q, k and v side by side, as in the packed product."""
    return np.concatenate([np.broadcast_to(t, part.shape) for t, part in zip(terms, parts, strict=True)], axis=1)


def worse(first: Proof, second: Proof) -> Proof:
    """The joint proof of two tensors: the larger difference; it holds if both hold."""
    return replace(first, difference=max(first.difference, second.difference), holds=first.holds and second.holds)
