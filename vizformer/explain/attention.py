"""The arithmetic of one attention head for one query, from the input row to what the sublayer adds.

Everything is recomputed in float64 from the weights and the recorded residual stream, each step from the one before,
and compared with what the model computed in float32 with its fused kernel: q, k, v and the residual stream directly,
scores and softmax (which the fused kernel never forms) through the z they lead to.
"""

from dataclasses import replace

from numpy import ndarray
from torch import nn

from vizformer.checkpoints import Checkpoint
from vizformer.explain import latex
from vizformer.explain.operands import Operands, float64, gather, rescaled, was_edited
from vizformer.explain.output import output_steps
from vizformer.explain.parts import norm_code, norm_live, recorded_head
from vizformer.explain.step import Contraction, Operand, Proof, Step
from vizformer.explain.weights import weight_steps
from vizformer.messages import N_, Message
from vizformer.model.trace import Trace


def attention_steps(checkpoint: Checkpoint, trace: Trace, site: str, head: int, query: int) -> list[Step]:
    """How query `query` attends at `site` in head `head`, number by number.

    input -> q, k, v -> q.k -> / sqrt(d_head) -> + mask -> softmax -> weighted sum of v -> W_O -> sum of heads -> add (& norm)

    Raises:
        TraceError: no such site, head or query in this trace, or the trace is of another model.

    Source: Vaswani et al. 2017, equation 1 and section 3.2.2.
    """
    o = gather(checkpoint, trace, site, head, query)
    projections = [_input(o), *_projections(o)]
    steps = [*projections, *weight_steps(o), *output_steps(o)]
    return [_marked(step, o) if _set_by_hand(step.key, o) else step for step in steps]


def _marked(step: Step, o: Operands) -> Step:
    """A step with numbers set by hand; its code takes them from the trace."""
    where = {"q": f"[{o.head}, {o.query}]", "k": f"[{o.head}]", "v": f"[{o.head}]"}.get(step.key)
    code = step.code
    if where is not None:
        code += f'\n{step.key} = trace["{o.site.name}"].{step.key}{where}  # with the numbers set by hand'
    return replace(step, edited=True, code=code)


def _set_by_hand(key: str, o: Operands) -> bool:
    site = o.site.name
    if key == "scores":
        return rescaled(o.trace, site)
    tensor, lead = {
        "input": (o.site.before, (o.query,)),
        "q": (f"{site}.q", (o.head, o.query)),
        "k": (f"{site}.k", (o.head,)),
        "v": (f"{site}.v", (o.head,)),
        "mask": (f"{site}.mask", (o.query,)),
        "add" if o.site.pre_norm else "norm": (o.site.after, (o.query,)),
    }.get(key, ("", ()))
    return was_edited(o.trace, tensor, lead)


def _input(o: Operands) -> Step:
    row = Operand(rf"r_{{{o.query}}}", N_("the residual stream at the query's position"), o.x_before)
    residual = f'trace.residual("{o.site.before}")[{o.query}]'
    if not o.site.pre_norm:
        return Step(
            "input",
            N_("The input row"),
            N_(
                "Position {query} holds a vector of {d_model} numbers in the residual stream at {name}. "
                "This post-norm model hands it to attention as it is.",
                query=o.query, d_model=o.d_model, name=o.site.before,
            ),
            r"x_i = r_i",
            rf"x_{{{o.query}}} = {latex.row(o.x)}",
            (row,), rf"x_{{{o.query}}}", o.x, f"x = {residual}", "x",
            Proof.compare(recorded_head("q", o), o.q, float64(o.record.q[o.head, o.query]), direct=False),
        )  # fmt: skip
    weight, bias = float64(o.site.norm.weight), float64(o.site.norm.bias)
    live = norm_live(rf"x_{{{o.query},0}}", o.x_before, o.site.norm, o.x[0])
    return Step(
        "input",
        N_("The input row, normalised"),
        N_(
            "Position {query} holds a vector of {d_model} numbers in the residual stream at {name}. This pre-norm model "
            "first shifts it to mean 0, divides by its standard deviation, then scales and shifts each number.",
            query=o.query, d_model=o.d_model, name=o.site.before,
        ),
        r"x_i = \frac{r_i - \mathrm{mean}(r_i)}{\sqrt{\mathrm{var}(r_i) + \epsilon}} \odot \gamma + \beta",
        live,
        (
            row,
            Operand(r"\gamma", N_("the norm's weight"), weight),
            Operand(r"\beta", N_("the norm's bias"), bias),
        ),
        rf"x_{{{o.query}}}", o.x, norm_code(o, "x", residual), "x",
        Proof.compare(recorded_head("q", o), o.q, float64(o.record.q[o.head, o.query]), direct=False),
    )  # fmt: skip


def _projections(o: Operands) -> list[Step]:
    q, k, v = (
        ("Q", "q", o.x[None], o.q[None], N_("Query: what this position looks for"),
         N_("The input row times the head's query matrix: {d_model} numbers become {d_head}.",
            d_model=o.d_model, d_head=o.d_head)),
        ("K", "k", o.source, o.k, N_("Keys: what each position offers to be found by"),
         N_("Each of the {n_k} rows on the key side, times the head's key matrix.", n_k=o.n_k)),
        ("V", "v", o.source, o.v, N_("Values: what each position hands over"),
         N_("The same rows times the head's value matrix: this is what gets mixed.")),
    )  # fmt: skip
    return [_projection(o, *q), _projection(o, *k), _projection(o, *v)]


def _projection(
    o: Operands, letter: str, name: str, rows: ndarray, result: ndarray, title: Message, text: Message
) -> Step:
    linear: nn.Linear = getattr(o.site.attention, f"W_{letter}")
    weight, bias = o.head_columns(linear)
    single = letter == "Q"
    index, subject = ("i", "x") if single else ("j", "s")
    if not single and not o.site.is_cross:
        subject = "x"
    position = o.query if single else 0
    recorded = getattr(o.record, name)[o.head]
    recorded = float64(recorded[o.query] if single else recorded)
    shown = result[0] if single else result
    operands = [
        Operand(rf"{subject}_{{{position}}}" if single else subject.upper(), _rows_meaning(o, single),
                rows[0] if single else rows, ("features",) if single else ("keys", "features")),
        Operand(rf"W_{letter}^{{({o.head})}}", N_("this head's columns of W_{letter}", letter=letter), weight,
                ("features", "features")),
    ]  # fmt: skip
    if bias is not None:
        operands.append(Operand(rf"b_{letter}^{{({o.head})}}", N_("this head's part of the bias"), bias))
    sum_ = latex.sum_of_products(rows[0], weight[:, 0], None if bias is None else float(bias[0]))
    inputs = "x" if single else "source"
    path = f"attention.W_{letter}"
    code = f"{name} = {inputs} @ {path}.weight[h].T" + ("" if bias is None else f" + {path}.bias[h]")
    if single:
        rows_of_head = f"h = slice({o.head} * {o.d_head}, {o.head + 1} * {o.d_head})  # the rows of head {o.head}"
        code = f"attention = {o.site.module}\n{rows_of_head}\n{code}"
    elif letter == "K":
        code = f"{_source_code(o)}\n{code}"
    return Step(
        name, title, text,
        rf"{name}_{index} = {subject}_{index}\,W_{letter}^{{(h)}}" + ("" if bias is None else rf" + b_{letter}^{{(h)}}"),
        rf"{name}_{{{position},0}} = {sum_} = {latex.number(result[0, 0])}",
        tuple(operands), rf"{name}_{{{position}}}" if single else letter, shown, code, name,
        Proof.compare(recorded_head(name, o), shown, recorded),
        contraction=Contraction(rows, weight, bias), axes=("features",) if single else ("keys", "features"),
    )  # fmt: skip


def _rows_meaning(o: Operands, single: bool) -> Message:
    if single:
        return N_("the input row")
    return N_("the encoder's output, one row per token") if o.site.is_cross else N_("the input, one row per token")


def _source_code(o: Operands) -> str:
    rows = f'trace.residual("{o.site.source}")'
    return norm_code(o, "source", rows) if o.site.pre_norm and not o.site.is_cross else f"source = {rows}"
