"""The arithmetic of one attention head for one query, from the input row to what the sublayer adds.

Everything is recomputed in float64 from the weights and the recorded residual stream, each step from the one before,
and compared with what the model computed, in its precision and with its fused kernel: q, k, v and the residual stream directly,
scores and softmax (which the fused kernel never forms) through the z they lead to.
"""

from dataclasses import replace

from numpy import ndarray
from torch import Tensor

from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain import latex, norms
from vizformer.explain.arrays import rescaled, was_edited
from vizformer.explain.mixing import mixing_steps
from vizformer.explain.operands import Operands, gather
from vizformer.explain.proof_anchors import recorded_head
from vizformer.explain.qk_norms import qk_norm_steps
from vizformer.explain.rope_steps import rotation_steps
from vizformer.explain.site_words import in_words
from vizformer.explain.softmax_steps import weight_steps
from vizformer.explain.step import Contraction, Operand, Proof, Step
from vizformer.messages import N_, Message
from vizformer.model.trace import Trace


def attention_steps(checkpoint: AnyCheckpoint, trace: Trace, site: str, head: int, query: int) -> list[Step]:
    """The attention of query `query` at `site` in head `head`, number by number.

    input -> q, k, v (-> normalised) (-> turned by position) -> q.k -> / sqrt(d_head) (-> + position bias) -> + mask -> softmax -> weighted sum of v -> W_O -> sum of heads -> add (& norm)

    Source: Vaswani et al. 2017, equation 1 and section 3.2.2.
    """
    o = gather(checkpoint, trace, site, head, query)
    made = [*_projections(o), *qk_norm_steps(o), *rotation_steps(o)]
    steps = [_input(o), *made, *weight_steps(o), *mixing_steps(o)]
    return [_marked(step, o) if _set_by_hand(step.key, o) else step for step in steps]


def _marked(step: Step, o: Operands) -> Step:
    """A step whose result has numbers set by hand; its code reads them from the trace."""
    letter = step.key.removesuffix("_turned").removesuffix("_normed")
    where = {"q": (o.head, o.query), "k": (o.kv_head,), "v": (o.kv_head,)}.get(letter)
    code, inputs = step.code, dict(step.inputs)
    if where is not None:
        code += f"\n{step.variable} = {letter}_by_hand  # with the numbers set by hand"
        inputs[f"{letter}_by_hand"] = getattr(o.record, letter)[where]
    return replace(step, edited=True, code=code, inputs=inputs)


def _set_by_hand(key: str, o: Operands) -> bool:
    site = o.site.name
    if key == "scores":
        return rescaled(o.trace, site)
    last = o.last  # an edit sets q and k after norm and rotation
    tensor, lead = {
        "input": (o.site.before, (o.query,)),
        f"q{last}": (f"{site}.q", (o.head, o.query)),
        f"k{last}": (f"{site}.k", (o.kv_head,)),
        "v": (f"{site}.v", (o.kv_head,)),
        "mask": (f"{site}.mask", (o.query,)),
        "add" if o.site.around.after is None else "norm": (o.site.after, (o.query,)),
    }.get(key, ("", ()))
    return was_edited(o.trace, tensor, lead)


def _input(o: Operands) -> Step:
    norm, i = o.site.around.before, o.query
    given: dict[str, object] = dict(query=i, d_model=o.d_model, place=in_words(o.site.before))
    row = Operand(rf"r_{{{i}}}", N_("the residual stream at the query's position"), o.x_before)
    return Step(
        "input",
        N_("The input row") if norm is None else N_("The input row, normalised"),
        N_(
            "Position {query} holds a vector of {d_model} numbers in the residual stream at {place}. A norm first "
            "divides it by its root mean square, then scales each number.",
            **given,
        )
        if norm is not None and norms.is_rms(norm)
        else N_(
            "Position {query} holds a vector of {d_model} numbers in the residual stream at {place}. A norm first "
            "shifts it to mean 0, divides by its standard deviation, then scales and shifts each number.",
            **given,
        )
        if norm is not None
        else N_(
            "Position {query} holds a vector of {d_model} numbers in the residual stream at {place}. "
            "Attention reads it as it is.",
            **given,
        ),
        r"x_i = r_i" if norm is None else norms.formula(norm, "x_i", "r_i"),
        rf"x_{{{i}}} = {latex.row(o.x)}" if norm is None else norms.live(rf"x_{{{i},0}}", o.x_before, norm, o.x[0]),
        rf"x_{{{i}}}",
        o.x,
        "x = r" if norm is None else norms.code(norm, "x", "r"),
        Proof.compare(
            recorded_head("q", o), o.q_recomputed, o.record.q[o.head, i], direct=False, terms=o.projection_sizes("Q")
        ),
        operands=(row, *(() if norm is None else norms.operands(norm))),
        inputs={"r": o.trace.residual(o.site.before)[i]} | ({} if norm is None else norms.inputs(norm)),
    )


def _projections(o: Operands) -> list[Step]:
    return [
        _projection(
            o,
            "Q",
            o.x[None],
            (o.q_projected if o.last else o.q_recomputed)[None],  # the last of the steps has the numbers set by hand
            N_("Query: what this position looks for"),
            N_(
                "The input row times the head's query matrix: {d_model} numbers become {d_head}.",
                d_model=o.d_model,
                d_head=o.d_head,
            ),
        ),
        _projection(
            o,
            "K",
            o.source,
            o.k_projected if o.last else o.k_recomputed,
            N_("Keys: what each position offers to be found by"),
            N_("Each of the {n_k} rows on the key side, times the head's key matrix.", n_k=o.n_k)
            if len(o.sharers) == 1
            else N_(
                "Each of the {n_k} rows on the key side, times the matrix of key/value head {kv}. Query heads {first} to "
                "{last} share it: fewer keys and values to compute and to keep.",
                n_k=o.n_k,
                kv=o.kv_head,
                first=o.sharers[0],
                last=o.sharers[-1],
            ),
        ),
        _projection(
            o,
            "V",
            o.source,
            o.v_recomputed,
            N_("Values: what each position hands over"),
            N_("The same rows times the head's value matrix: this is what gets mixed.")
            if len(o.sharers) == 1
            else N_(
                "The same rows times the value matrix that the query heads {first} to {last} share: this is what gets mixed.",
                first=o.sharers[0],
                last=o.sharers[-1],
            ),
        ),
    ]


def _projection(o: Operands, letter: str, rows: ndarray, result: ndarray, title: Message, text: Message) -> Step:
    name = letter.lower()
    weight, bias = o.head_columns(letter)
    single = letter == "Q"
    shared = not single and len(o.sharers) > 1
    index, subject = ("i", "x") if single else ("j", "s")
    if not single and not o.site.is_cross:
        subject = "x"
    position = o.query if single else 0
    recorded = getattr(o.record, name)[o.head if single else o.kv_head]
    recorded = recorded[o.query] if single else recorded
    final: ndarray = getattr(o, f"{name}_recomputed")
    operands = [
        Operand(
            rf"{subject}_{{{position}}}" if single else subject.upper(),
            N_("the input row")
            if single
            else N_("the encoder's output, one row per token")
            if o.site.is_cross
            else N_("the input, one row per token"),
            rows[0] if single else rows,
            ("features",) if single else ("keys", "features"),
        ),
        Operand(
            rf"W_{letter}^{{({o.kv_head if shared else o.head})}}",
            N_("the columns of W_{letter} of key/value head {kv}", letter=letter, kv=o.kv_head)
            if shared
            else N_("this head's columns of W_{letter}", letter=letter),
            weight,
            ("features", "features"),
        ),
    ]
    if bias is not None:
        operands.append(Operand(rf"b_{letter}^{{({o.head})}}", N_("this head's part of the bias"), bias))
    sum_ = latex.sum_of_products(rows[0], weight[:, 0], None if bias is None else float(bias[0]))
    given = "x" if single else "source"
    code = f"{name} = {given} @ W_{letter}" + ("" if bias is None else f" + b_{letter}")
    inputs = o.projection(letter)
    if not single:
        made, reads = _source(o)
        code, inputs = f"{made}\n{code}", {**reads, **inputs}
    symbol = "h" if not shared else "g"
    # the model records q and k after norm and rotation
    changed = letter != "V" and bool(o.last)
    return Step(
        name,
        title,
        text,
        rf"{name}_{index} = {subject}_{index}\,W_{letter}^{{({symbol})}}"
        + ("" if bias is None else rf" + b_{letter}^{{({symbol})}}"),
        rf"{name}_{{{position},0}} = {sum_} = {latex.number(result[0, 0])}",
        rf"{name}_{{{position}}}" if single else letter,
        result[0] if single else result,
        code,
        Proof.compare(recorded_head(name, o), final, recorded, direct=not changed, terms=o.projection_sizes(letter)),
        operands=tuple(operands),
        contraction=Contraction(rows, weight, bias),
        axes=("features",) if single else ("keys", "features"),
        inputs=inputs,
    )


def _source(o: Operands) -> tuple[str, dict[str, Tensor]]:
    """The code of the rows that keys and values are computed from, and its inputs; the encoder's output is not
    normalised here.
    """
    site = o.site
    norm, rows = None if site.is_cross else site.around.before, {"R": o.trace.residual(site.source)}
    if norm is None:
        return "source = R", rows
    return norms.code(norm, "source", "R"), rows | norms.inputs(norm)
