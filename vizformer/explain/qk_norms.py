"""Norms of queries and keys: each head's vector is normalised before rotary positions turn it."""

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
    """The steps that normalise the query and the keys; none in a model without such norms.

    Source: Henry et al. 2020, "Query-Key Normalization"; here with a learned scale, as in Qwen3.
    """
    q_norm, k_norm = o.site.attention.q_norm, o.site.attention.k_norm
    if q_norm is None or k_norm is None:
        return []
    i, direct = o.query, o.angles is None  # the model records q and k after the rotation
    normed_q = Proof.compare(recorded_head("q", o), o.q_recomputed, o.record.q[o.head, i], direct=direct)
    normed_k = Proof.compare(recorded_head("k", o), o.k_recomputed, o.record.k[o.kv_head], direct=direct)
    # with the numbers set by hand, unless the rotation follows
    q, k = (o.q_recomputed, o.k_recomputed) if direct else (o.q_normed, o.k_normed)
    return [_normed_step(o, "Q", q_norm, q, normed_q), _normed_step(o, "K", k_norm, k, normed_k)]


def _normed_step(o: Operands, letter: Literal["Q", "K"], norm: Norm, normed: ndarray, proof: Proof) -> Step:
    """The step that normalises the query, or every key."""
    name, single = letter.lower(), letter == "Q"
    before = o.q_projected if single else o.k_projected
    row, position = (before, o.query) if single else (before[0], 0)
    index = "i" if single else "j"
    axes: tuple[Axis, ...] = ("features",) if single else ("keys", "features")
    return Step(
        f"{name}_normed",
        N_("Normalise the query") if single else N_("Normalise every key"),
        _text(o, single),
        norms.formula(norm, rf"\hat {name}_{index}", f"{name}_{index}"),
        norms.live(rf"\hat {name}_{{{position},0}}", row, norm, normed[0] if single else normed[0, 0]),
        rf"\hat {name}_{{{position}}}" if single else r"\hat K",
        normed,
        norms.code(norm, f"{name}_normed", name),
        proof,
        operands=(
            Operand(f"{name}_{{{position}}}" if single else letter, _before_text(single), before, axes),
            *norms.operands(norm),
        ),
        axes=axes,
        inputs=norms.inputs(norm),
    )


def _before_text(single: bool) -> Message:
    return N_("the query before its norm") if single else N_("the keys before their norm, one row each")


def _text(o: Operands, single: bool) -> Message:
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
    """The step that normalises all heads and positions at once; `q` before, `normed` queries and keys after it."""
    assert attention.q_norm is not None
    assert attention.k_norm is not None
    codes = [
        norms.code(module, name, name, of=f"_{name}")
        for name, module in (("q", attention.q_norm), ("k", attention.k_norm))
    ]
    return Step(
        at.key("normed"),
        N_("Normalise queries and keys"),
        N_(
            "In every head, each row of a query or key is brought to a standard size by itself, then scaled: one scale for "
            "all queries of the layer, one for all keys."
        ),
        norms.formula(attention.q_norm, r"\hat q_{h,i}", "q_{h,i}"),
        norms.live(r"\hat Q_{0,0,0}", q[0, 0], attention.q_norm, normed[0][0, 0, 0]),
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


def normalise_both(attention: Attention, q: ndarray, k: ndarray) -> tuple[ndarray, ndarray]:
    """Queries and keys [h, n, d_head] after their norms; unchanged without norms."""
    if attention.q_norm is None or attention.k_norm is None:
        return q, k
    return norms.normalise(q, attention.q_norm), norms.normalise(k, attention.k_norm)
