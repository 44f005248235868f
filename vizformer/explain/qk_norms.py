"""Norms of queries and keys: each head's vector is normalised before rotary positions turn it."""

from jaxtyping import Float
from numpy import ndarray

from vizformer.explain import norms
from vizformer.explain.attention_numbers import AttentionNumbers, HeadNumbers
from vizformer.explain.step import Made, Operand, Proof, Step, filled
from vizformer.explain.sublayer import KEYS_OF_HEADS, QUERIES_OF_HEADS
from vizformer.messages import N_

# q or k -> title, text, what is normalised
_WORDS = {
    "q": (
        N_("Normalise the query"),
        N_(
            "The query's {d_head} numbers are brought to a standard size, then scaled by what was learned, the same in "
            "every head of the layer. Long vectors can no longer win by their length alone."
        ),
        N_("the query before its norm"),
    ),
    "k": (
        N_("Normalise every key"),
        N_("Each key likewise, with a scale of its own. What is left to compare are directions."),
        N_("the keys before their norm, one row each"),
    ),
}


def qk_norm_steps(o: HeadNumbers) -> list[Step]:
    """The steps that normalise the query and the keys; none in a model without such norms.

    Source: Henry et al. 2020, "Query-Key Normalization"; here with a learned scale, as in Qwen3.
    """
    if o.site.attention.q_norm is None:
        return []
    steps = []
    for name, norm, index, at, symbol, hat in (
        ("q", o.site.attention.q_norm, "i", o.query, f"q_{{{o.query}}}", rf"\hat q_{{{o.query}}}"),
        ("k", o.site.attention.k_norm, "j", 0, "K", r"\hat K"),
    ):
        title, text, what = _WORDS[name]
        before, after = o.after_step(name), o.after_step(name, "_normed")
        row, first = (before, after[0]) if name == "q" else (before[0], after[0, 0])
        symbols, live = (rf"\hat {name}_{index}", f"{name}_{index}"), rf"\hat {name}_{{{at},0}}"
        said = norms.written(norm, symbols, live, row, first, (f"{name}_normed", name))
        said["operands"] = (Operand(symbol, what, before, o.axes(name)), *said["operands"])
        values = {"d_head": o.d_head} if name == "q" else {}
        steps.append(
            Step(
                f"{name}_normed",
                title,
                filled(text, **values),
                symbol=hat,
                result=after,
                proof=o.proof(name, "_normed"),
                axes=o.axes(name),
                **said,
            )
        )
    return steps


def layer_step(at: AttentionNumbers, proof: Proof) -> Step:
    """The step that normalises all heads and positions at once."""
    q_norm, k_norm = at.attention.q_norm, at.attention.k_norm
    assert q_norm is not None
    assert k_norm is not None
    before: Float[ndarray, "h n d_head"] = at.after_step("q")
    q, k = (at.after_step(name, "_normed") for name in "qk")
    said = norms.written(
        q_norm, (r"\hat q_{h,i}", "q_{h,i}"), r"\hat Q_{0,0,0}", before[0, 0], q[0, 0, 0], ("q", "q"), of="_q"
    )
    said["code"] += "\n" + norms.code(k_norm, "k", "k", of="_k")
    said["inputs"] |= norms.inputs(k_norm, of="_k")
    return Step(
        at.key("normed"),
        N_("Normalise queries and keys"),
        N_(
            "In every head, each row of a query or key is brought to a standard size by itself, then scaled: one scale for "
            "all queries of the layer, one for all keys."
        ),
        symbol=r"\hat Q",
        result=q,
        proof=proof,
        variable="q",
        axes=QUERIES_OF_HEADS,
        also=(Made("k", Operand(r"\hat K", N_("the keys, normalised"), k, KEYS_OF_HEADS)),),
        meaning=N_("the queries, normalised"),
        **said,
    )
