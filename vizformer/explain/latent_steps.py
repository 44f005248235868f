"""Latent attention (`vizformer.model.latent_attention`): from the rows to queries, keys and values, as steps.

    c' = RMSNorm(x W_DQ) -> q = c' W_Q -> c = RMSNorm(x W_DKV) -> r = x W_KR -> k = [r; c W_K] -> v = c W_V

of a whole layer, or of one head for one query; what follows is that of all attention, with one more step that makes the
same scores without any key.

Source: DeepSeek-AI 2024, "DeepSeek-V2", section 2.1.
"""

from dataclasses import replace

import numpy as np
from numpy import ndarray
from torch import Tensor, nn

from vizformer.explain import latex, norms
from vizformer.explain.arrays import float64, set_cells
from vizformer.explain.latent_numbers import LatentNumbers
from vizformer.explain.layer_projections import worse
from vizformer.explain.operands import Operands
from vizformer.explain.proof_anchors import recorded_head
from vizformer.explain.rope import Slowing, turn
from vizformer.explain.rope_steps import layer_step as rope_step
from vizformer.explain.site_words import in_words
from vizformer.explain.step import Axis, Contraction, Maker, Operand, Proof, Step
from vizformer.explain.sublayer import ROWS, Sublayer, bias_of, linear_code, linear_inputs, norm_before
from vizformer.messages import N_, Message
from vizformer.model.latent_attention import LatentAttention
from vizformer.model.norms import Norm

SHARED: tuple[Axis, ...] = ("keys", "features")


def latent_head_steps(o: Operands, source: str, reads: dict[str, Tensor]) -> list[Step]:
    """One head for one query; `source` is the code of all rows, which reads `reads`."""
    q, k, v = (
        Proof.compare(recorded_head(name, o), found, own, direct=name == "v" or not o.last, terms=terms)
        for name, found, own, terms in (
            ("q", o.q_recomputed, o.record.q[o.head, o.query], 0.0),
            ("k", o.k_recomputed, o.record.k[o.head], 0.0),
            ("v", o.v_recomputed, o.record.v[o.head], o.projection_sizes("V")),
        )
    )
    return _steps(o.of_latents, Maker("", k), (q, k, v), o, (source, reads))


def absorbed_step(o: Operands) -> Step:
    """The scores once more, of the latents themselves."""
    layer, i = o.of_latents.layer, o.query
    turned, W = layer.turned, _columns(layer.W_K, o.of_latents.own(layer.W_K, o.head)).T
    asked = np.concatenate([o.q[:turned], o.q[turned:] @ float64(W)])
    kept = np.concatenate([o.k[:, :turned], o.of_latents.latent], axis=1)
    found = kept @ asked * o.record.scale
    place = N_("the scores of the queries and keys in {place}", place=in_words(o.site.name))
    terms = np.abs(kept) @ np.abs(asked) * o.record.scale if o.is_half else 0.0
    own = o.record.content_scores(o.head)[i]
    q, k = f"q{o.last}", f"k{o.last}"
    return Step(
        "absorbed",
        N_("The same scores without any key"),
        N_(
            "W_K moves over to the query, once, and the query is then compared with the latents as they are. The scores are the "
            "same, and a cache needs no keys: {kept} numbers for each token serve all {heads} heads, where their keys and values "
            "would be {all}.",
            kept=kept.shape[1],
            heads=layer.n_heads,
            all=layer.n_heads * (layer.d_key + layer.d_head),
        ),
        r"q_i \cdot k_j = q^r_i \cdot r_j + \left(q^c_i\,{W_K^{(h)}}^\top\right) \cdot c_j",
        rf"s_{{{i},0}} = {latex.number(o.record.scale)} \cdot ({latex.sum_of_products(asked, kept[0])}) = {latex.number(found[0])}",
        rf"s_{{{i}}}",
        found,
        f"asked = torch.cat([{q}[:{turned}], {q}[{turned}:] @ W_K.T])\n"
        f"kept = torch.cat([{k}[:, :{turned}], latent], dim=-1)  # what a cache holds\n"
        f"absorbed = kept @ asked * {o.record.scale!r}",
        Proof.compare(place, found, float64(own), terms=terms, dtype=o.dtype),
        operands=(
            Operand(r"[r \mid c]", N_("what a cache keeps: one row per token, for all heads"), kept, SHARED),
            Operand(r"[q^r \mid q^c W_K^\top]", N_("the query that asks the latents"), asked),
        ),
        axes=("keys",),
        blocked=o.blocked,
        inputs={"W_K": W.T},
    )


def latent_projections(
    at: Sublayer, layer: LatentAttention, site: str, angles: ndarray | None, slowed: Slowing | None, theta: float
) -> tuple[list[Step], ndarray, ndarray, ndarray]:
    """Of all heads and rows; queries, keys and values follow the steps, as attention uses them, head by head."""
    record, n = at.trace[site], LatentNumbers(layer, at.read)
    turned = (n.q, n.k) if angles is None else tuple(turn(t, angles, slowed, at.dtype) for t in (n.q, n.k))
    q, k, v = (set_cells(at.trace, f"{site}.{name}", t) for name, t in zip("qkv", (*turned, n.v), strict=True))
    anchor = N_("q, k and v recorded in {place}", place=in_words(site))
    of_q, of_k = (Proof.compare(anchor, t, own, direct=angles is None) for t, own in ((q, record.q), (k, record.k)))
    of_v = Proof.compare(anchor, v, record.v, terms=n.value_sizes())
    steps = [
        *norm_before(at, replace(of_q, direct=False)),
        *_steps(n, at.maker(of_k), (of_q, of_k, of_v), None, ("", {})),
    ]
    if angles is not None:
        both = replace(worse(of_q, of_k), direct=True)
        steps.append(rope_step(at, n.q, (q, k), angles, theta, slowed, both, normed=False))
    return steps, q, k, v


def _steps(
    n: LatentNumbers,
    make: Maker,
    proofs: tuple[Proof, Proof, Proof],
    o: Operands | None,
    source: tuple[str, dict[str, Tensor]],
) -> list[Step]:
    """`o` is the one head and query; None: all of them.  `source` is the code of the rows, and what it reads."""
    layer, (of_q, of_k, of_v), single = n.layer, proofs, o is not None
    head, at, h = (o.head, o.query, "^{(h)}") if o is not None else (0, 0, "")
    line, x, rows = (f"{source[0]}\n", "x", "source") if single else ("", "x", "x")
    asks, asked = (n.asks[at : at + 1], n.asked[at : at + 1]) if single else (n.asks, n.asked)
    read, index = (n.rows[at : at + 1] if single else n.rows), at if single else 0
    into = "" if single else f".unflatten(-1, ({layer.n_heads}, -1)).transpose(0, 1)"
    of_heads: tuple[Axis, ...] = SHARED if single else ("heads", "keys", "features")

    def used(linear: nn.Linear) -> Tensor:
        return _columns(linear, n.own(linear, head) if single else slice(None))

    steps: list[Step] = []
    if layer.W_DQ is not None and layer.query_norm is not None:
        steps += _compressed(
            replace(make, proof=replace(of_q, direct=False), axes=("features",) if single else ROWS),
            ("c'", "DQ", "asks", x, "i"),
            (layer.W_DQ, layer.query_norm),
            (read, asked, asks),
            N_("Compress the row for the queries"),
            N_(
                "{d} numbers become {rank}: the queries of all heads are made of this short vector.",
                d=n.rows.shape[1],
                rank=asks.shape[1],
            ),
        )
        x = "asks"
    q = n.q[head, at] if single else n.q
    q = o.q_recomputed if o is not None and not o.last else q
    latent_q = "c'" if layer.W_DQ is not None else "x"
    columns = float64(_columns(layer.W_Q, n.own(layer.W_Q, head)))
    steps.append(
        make(
            "q",
            N_("Query: what this position looks for"),
            N_(
                "A query has {d} numbers. The first {turned} are for the position, by which they are turned; the others compare "
                "what the tokens are.",
                d=layer.d_key,
                turned=layer.turned,
            ),
            rf"q_i = {latent_q}_i\,W_Q{h}",
            rf"q_{{{index},0}} = {latex.sum_of_products(asks[0], columns[:, 0])} = {latex.number(n.q[head, at, 0])}",
            rf"q_{{{at}}}" if single else "Q",
            q,
            f"q = ({x} @ W_Q){into}" if into else f"q = {x} @ W_Q",
            proof=of_q,
            axes=("features",) if single else ("heads", "queries", "features"),
            contraction=Contraction(asks, columns) if single else None,
            inputs={"W_Q": used(layer.W_Q)},
        )
    )
    through_k = replace(make, proof=replace(of_k, direct=False), axes=SHARED)
    latent = _compressed(
        through_k,
        ("c", "DKV", "latent", rows, "j"),
        (layer.W_DKV, layer.latent_norm),
        (n.rows, n.down, n.latent),
        N_("Compress each row: the latent"),
        N_(
            "{d} numbers become {rank}. The keys and values of all {heads} heads are made of this short vector, and a cache keeps "
            "it in their place.",
            d=n.rows.shape[1],
            rank=n.latent.shape[1],
            heads=layer.n_heads,
        ),
    )
    latent[0] = replace(latent[0], code=line + latent[0].code, inputs={**source[1], **latent[0].inputs})
    W_KR, W_K, W_V = (
        float64(layer.W_KR.weight).T,
        *(float64(_columns(w, n.own(w, head))) for w in (layer.W_K, layer.W_V)),
    )
    k, v = (n.k[head], n.v[head]) if single else (n.k, n.v)
    if o is not None:
        k, v = (k if o.last else o.k_recomputed), o.v_recomputed
    shared = "shared" if single else f"shared.expand({layer.n_heads}, -1, -1)"
    return [
        *steps,
        *latent,
        through_k(
            "shared_key",
            N_("The part of the key that will be turned"),
            N_(
                "{turned} numbers, made of the row itself, the same for all heads. What is turned cannot be made of the latent: "
                "the turn would stand between W_Q and W_K, and the two could not become one matrix.",
                turned=layer.turned,
            ),
            r"r_j = x_j\,W_\mathrm{KR}" + ("" if layer.W_KR.bias is None else r" + b_\mathrm{KR}"),
            rf"r_{{0,0}} = {latex.sum_of_products(n.rows[0], W_KR[:, 0], float(bias_of(layer.W_KR)[0]))} = {latex.number(n.shared[0, 0])}",
            "R",
            n.shared,
            f"shared = {rows}{linear_code(layer.W_KR, 'KR')}",
            contraction=Contraction(n.rows, W_KR, bias_of(layer.W_KR)),
            inputs=linear_inputs(layer.W_KR, "KR"),
        ),
        make(
            "k",
            N_("Keys: what each position offers to be found by"),
            N_(
                "In each head the shared part, and after it {n} numbers of its own, made of the latent.", n=W_K.shape[1]
            ),
            rf"k_j = \left[\,r_j \mid c_j\,W_K{h}\,\right]",
            rf"k_{{0,{layer.turned}}} = {latex.sum_of_products(n.latent[0], W_K[:, 0])} = {latex.number(n.k[head, 0, layer.turned])}",
            "K",
            k,
            f"k = torch.cat([{shared}, {_product('W_K', into)}], dim=-1)",
            proof=of_k,
            axes=of_heads,
            operands=(Operand("c", N_("the latents, one row per token"), n.latent, SHARED),),
            inputs={"W_K": used(layer.W_K)},
        ),
        make(
            "v",
            N_("Values: what each position hands over"),
            N_("Made of the same latent, by a matrix of each head's own: this is what gets mixed."),
            rf"v_j = c_j\,W_V{h}",
            rf"v_{{0,0}} = {latex.sum_of_products(n.latent[0], W_V[:, 0])} = {latex.number(n.v[head, 0, 0])}",
            "V",
            v,
            f"v = {_product('W_V', into)}",
            proof=of_v,
            axes=of_heads,
            contraction=Contraction(n.latent, W_V) if single else None,
            inputs={"W_V": used(layer.W_V)},
        ),
    ]


def _product(name: str, into: str) -> str:
    return f"(latent @ {name}){into}" if into else f"latent @ {name}"


def _columns(linear: nn.Linear, part: slice = slice(None)) -> Tensor:
    """Columns of a matrix, as in x W."""
    return linear.weight[part].detach().T


def _compressed(
    make: Maker,
    names: tuple[str, str, str, str, str],
    modules: tuple[nn.Linear, Norm],
    numbers: tuple[ndarray, ndarray, ndarray],
    title: Message,
    text: Message,
) -> list[Step]:
    """A row through a narrow matrix, and the norm of what it is then.

    `names` are the symbol, the letters of the matrix, the variable, that of the rows, and the index.
    """
    (symbol, letters, variable, rows, index), (linear, norm), (x, down, normed) = names, modules, numbers
    W, squeezed = float64(linear.weight).T, make.axes == ("features",)
    found, after = (down[0], normed[0]) if squeezed else (down, normed)
    hat = rf"\hat {symbol}"
    return [
        make(
            f"{variable}_down",
            title,
            text,
            rf"{hat}_{index} = x_{index}\,W_\mathrm{{{letters}}}"
            + ("" if linear.bias is None else rf" + b_\mathrm{{{letters}}}"),
            rf"{hat}_{{0,0}} = {latex.sum_of_products(x[0], W[:, 0], float(bias_of(linear)[0]))} = {latex.number(down[0, 0])}",
            hat,
            found,
            f"{variable}_down = {rows}{linear_code(linear, letters)}",
            contraction=Contraction(x, W, bias_of(linear)),
            inputs=linear_inputs(linear, letters),
        ),
        make(
            variable,
            N_("Normalise the short vector"),
            N_("It is brought to a standard size, then each number is scaled by what was learned."),
            norms.formula(norm, f"{symbol}_{index}", f"{hat}_{index}"),
            norms.live(f"{symbol}_{{0,0}}", down[0], norm, normed[0, 0]),
            symbol,
            after,
            norms.code(norm, variable, f"{variable}_down", of=f"_{variable}"),
            operands=norms.operands(norm),
            inputs=norms.inputs(norm, of=f"_{variable}"),
        ),
    ]
