"""Norms of queries and keys: each vector of a head is brought to one length before positions turn it."""

from typing import Literal

from jaxtyping import Float
from numpy import ndarray

from vizformer.explain import norms
from vizformer.explain.operands import Operands
from vizformer.explain.proof_anchors import recorded_head
from vizformer.explain.step import Axis, Made, Operand, Proof, Step
from vizformer.explain.sublayer import Sublayer
from vizformer.messages import N_, Message
from vizformer.model.attention import Attention
from vizformer.model.norms import Norm


def qk_norm_steps(o: Operands) -> list[Step]:
    """Nothing where the products with W_Q and W_K go on as they are; otherwise the query, then every key.

    Source: Henry et al. 2020, "Query-Key Normalization"; here with a learned scale, as in Qwen3.
    """
    q_norm, k_norm = o.site.attention.q_norm, o.site.attention.k_norm
    if q_norm is None or k_norm is None:
        return []
    i, direct = o.query, o.angles is None  # the model records q and k after the rotation
    normed_q = Proof.compare(recorded_head("q", o), o.q_recomputed, o.record.q[o.head, i], direct=direct)
    normed_k = Proof.compare(recorded_head("k", o), o.k_recomputed, o.record.k[o.kv_head], direct=direct)
    # with what was set by hand, or before it is
    q, k = (o.q_recomputed, o.k_recomputed) if direct else (o.q_normed, o.k_normed)
    return [_normed_step(o, "Q", q_norm, q, normed_q), _normed_step(o, "K", k_norm, k, normed_k)]


def _normed_step(o: Operands, letter: Literal["Q", "K"], norm: Norm, normed: ndarray, proof: Proof) -> Step:
    """The query, or every key; where one norm reaches over all heads, their numbers are needed first."""
    name, single, together = letter.lower(), letter == "Q", o.normed_together
    projected = o.q_projected if single else o.k_projected
    before, own = (o.all_heads(letter), o.own_numbers(letter)) if together else (projected, slice(0, o.d_head))
    row, position = (before, o.query) if single else (before[0], 0)
    mark, index = letter if together else name, "i" if single else "j"
    reach = dict(width=len(row), first=own.start, last=own.stop - 1)
    axes: tuple[Axis, ...] = ("features",) if single else ("keys", "features")
    code, inputs = norms.code(norm, f"{name}_normed", name), norms.inputs(norm)
    if together:
        rows = "x" if single else "source"
        bias = "" if getattr(o.site.attention, f"W_{letter}").bias is None else f" + b_{letter}_all"
        code = (
            f"{name}_all = {rows} @ W_{letter}_all{bias}  # of all heads\n"
            + norms.code(norm, f"{name}_all", f"{name}_all")
            + f"\n{name}_normed = {name}_all[..., {own.start}:{own.stop}]"
        )
        inputs |= o.all_projections(letter)
    return Step(
        f"{name}_normed",
        N_("Normalise the query") if single else N_("Normalise every key"),
        _text(o, single, reach),
        norms.formula(norm, rf"\hat {mark}_{index}", f"{mark}_{index}"),
        norms.live(
            rf"\hat {mark}_{{{position},{own.start}}}", row, norm, normed[0] if single else normed[0, 0], own.start
        ),
        rf"\hat {name}_{{{position}}}" if single else r"\hat K",
        normed,
        code,
        proof,
        operands=(
            Operand(f"{mark}_{{{position}}}" if single else letter, _before_text(single, together), before, axes),
            *norms.operands(norm),
        ),
        axes=axes,
        inputs=inputs,
    )


def _before_text(single: bool, together: bool) -> Message:
    if together:
        return (
            N_("the query before its norm, of all heads") if single else N_("the keys before their norm, of all heads")
        )
    return N_("the query before its norm") if single else N_("the keys before their norm, one row each")


def _text(o: Operands, single: bool, reach: dict[str, int]) -> Message:
    if o.normed_together and single:
        return N_(
            "The queries of all heads stand side by side, {width} numbers, and are brought to a standard size together, then "
            "scaled by what was learned; the numbers {first} to {last} are this head's.",
            **reach,
        )
    if o.normed_together:
        return N_(
            "Each position's keys likewise: those of all heads side by side, {width} numbers, of which {first} to {last} are "
            "this head's.",
            **reach,
        )
    if single:
        return N_(
            "The query's {d_head} numbers are brought to a standard size, then scaled by what was learned, the same in "
            "every head of the layer. Long vectors can no longer win by their length alone.",
            d_head=o.d_head,
        )
    return N_("Each key likewise, with a scale of its own. What is left to compare are directions.")


def layer_step(
    at: Sublayer,
    attention: Attention,
    q: Float[ndarray, "h n d_head"],
    normed: tuple[ndarray, ndarray],
    proof: Proof,
) -> Step:
    """For all heads and positions at once; `q` before, `normed` the queries and keys after."""
    assert attention.q_norm is not None
    assert attention.k_norm is not None
    codes = [_code(attention, module, name) for name, module in (("q", attention.q_norm), ("k", attention.k_norm))]
    row = q[:, 0].ravel() if attention.normed_together else q[0, 0]
    return Step(
        at.key("normed"),
        N_("Normalise queries and keys"),
        N_(
            "In every head, each row of a query or key is brought to a standard size by itself, then scaled: one scale for "
            "all queries of the layer, one for all keys."
        )
        if not attention.normed_together
        else N_(
            "The queries of all heads stand side by side in one row, which is brought to a standard size, then scaled; the keys "
            "likewise. So the heads of a row keep their sizes compared with each other."
        ),
        norms.formula(attention.q_norm, r"\hat q_{h,i}", "q_{h,i}"),
        norms.live(r"\hat Q_{0,0,0}", row, attention.q_norm, normed[0][0, 0, 0]),
        r"\hat Q",
        normed[0],
        "\n".join(codes),
        proof,
        variable="q",
        operands=norms.operands(attention.q_norm),
        axes=("heads", "queries", "features"),
        inputs=norms.inputs(attention.q_norm, of="_q") | norms.inputs(attention.k_norm, of="_k"),
        also=(Made("k", Operand(r"\hat K", N_("the keys, normalised"), normed[1], ("heads", "keys", "features"))),),
        meaning=N_("the queries, normalised"),
    )


def _code(attention: Attention, norm: Norm, name: str) -> str:
    line = norms.code(norm, name, name, of=f"_{name}")
    if not attention.normed_together:
        return line
    cut = f"{name}.unflatten(-1, (-1, {attention.d_head})).transpose(0, 1)"
    return f"{name} = {name}.transpose(0, 1).flatten(1)\n{line}\n{name} = {cut}"


def normalise_both(attention: Attention, q: ndarray, k: ndarray) -> tuple[ndarray, ndarray]:
    """Queries and keys [h, n, d_head] after their norms, or as they are where there are none."""
    if attention.q_norm is None or attention.k_norm is None:
        return q, k
    return _normalised(attention, q, attention.q_norm), _normalised(attention, k, attention.k_norm)


def _normalised(attention: Attention, heads: Float[ndarray, "h n d_head"], norm: Norm) -> ndarray:
    if not attention.normed_together:
        return norms.normalise(heads, norm)
    h, n, d_head = heads.shape
    rows = norms.normalise(heads.transpose(1, 0, 2).reshape(n, h * d_head), norm)
    return rows.reshape(n, h, d_head).transpose(1, 0, 2)
