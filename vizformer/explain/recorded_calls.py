"""Steps of a recorded model: the calls of its author's own code as a page shows steps, each with its line and its proof."""

from collections.abc import Sequence

import numpy as np
from numpy import ndarray

from vizformer.checkpoints.recorded.checkpoint import RecordedCheckpoint
from vizformer.checkpoints.tensors.memory import name_of
from vizformer.errors import TraceError
from vizformer.explain import latex
from vizformer.explain.arrays import float64
from vizformer.explain.step import Axis, Contraction, Operand, Proof, Step, Written
from vizformer.messages import N_, Message
from vizformer.model.trace import Trace
from vizformer.recorder.as_trace import app_sites
from vizformer.recorder.op_recorder import Numbers
from vizformer.recorder.op_steps import OpStep, attention_ops, layer_ops

ROOM = 16 * 2**20
"""The most bytes of numbers behind the steps of one head and one query."""

TITLES = {
    "input": N_("Input: {call}").text,
    "projections": N_("Projections: {call}").text,
    "q and k": N_("What happens to q and k: {call}").text,
    "scores": N_("Scores: {call}").text,
    "softmax": N_("Softmax: {call}").text,
    "weighted sum": N_("Weighted sum: {call}").text,
    "output": N_("Output: {call}").text,
    "sum": N_("Sum: {call}").text,
}
_ENTRIES = {
    "input": N_("The residual stream"),
    "memory": N_("The output of the other stack"),
    "attention": N_("z of all heads"),
}
_TEXTS = {
    "input": N_(
        "The row of the residual stream becomes what the attention reads; a norm stands here where the model has one."
    ),
    "projections": N_("Matrices of weights make queries, keys and values."),
    "q and k": N_("Queries, keys or values are changed before the scores: rotated by position, normalised or scaled."),
    "scores": N_("The dot product of the query with every key; then the scale, the position bias and the mask."),
    "softmax": N_("Scores become weights."),
    "weighted sum": N_("The rows of the values are summed with these weights: z of this head."),
    "output": N_("z of all heads, side by side, is brought back to the width of the stream."),
    "sum": N_("The output of attention is added to the residual stream."),
}
_FORMULAS = {
    "linear": r"y = x W^\top",
    "addmm": r"y = x W + b",
    "matmul": r"C = A B",
    "rmatmul": r"C = A B",
    "bmm": r"C = A B",
    "mm": r"C = A B",
    "baddbmm": r"C = \beta M + \alpha A B",
    "add": r"y = a + b",
    "radd": r"y = a + b",
    "sub": r"y = a - b",
    "mul": r"y = a \cdot b",
    "rmul": r"y = a \cdot b",
    "div": r"y = a / b",
    "truediv": r"y = a / b",
    "neg": r"y = -x",
    "pow": r"y = x^k",
    "mean": r"y = \frac{1}{d} \sum_i x_i",
    "sum": r"y = \sum_i x_i",
    "rsqrt": r"y = \frac{1}{\sqrt{x}}",
    "sqrt": r"y = \sqrt{x}",
    "exp": r"y = e^{x}",
    "tanh": r"y = \tanh x",
    "sigmoid": r"y = \frac{1}{1 + e^{-x}}",
    "relu": r"y = \max(x, 0)",
    "silu": r"y = \frac{x}{1 + e^{-x}}",
    "gelu": r"y = x \, \Phi(x)",
    "softmax": r"w_j = \frac{e^{s_j}}{\sum_m e^{s_m}}",
    "masked_fill": r"s_j = m \quad (j \in M)",
    "layer_norm": r"y = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} \cdot \gamma + \beta",
    "rms_norm": r"y = \frac{x}{\sqrt{\overline{x^2} + \varepsilon}} \cdot \gamma",
}
_FUSED = {
    "scores": r"s_j = c \, q \cdot k_j + m_j",
    "softmax": r"w_j = \frac{e^{s_j}}{\sum_m e^{s_m}}",
    "weighted sum": r"z = \sum_j w_j v_j",
}


def recorded_steps(checkpoint: RecordedCheckpoint, trace: Trace, site: str, head: int, query: int) -> list[Step]:
    """The attention of query `query` at `site` in head `head`, call by call of the author's own code.

    input -> projections -> what happens to q and k -> scores -> softmax -> weighted sum -> output -> sum

    The model runs three times more.

    Raises:
        TraceError: what `vizformer.recorder.RecordedTrace.steps` raises; a site or head that is not there.
    """
    record = trace[site]
    run = checkpoint.again(trace)
    attention = app_sites(run)[site]
    query %= attention.n_q
    blocked = None if record.bias is None else record.reason(head)[query].cpu().numpy() != 0
    ops = attention_ops(run, attention, head, query, ROOM)
    return _steps(ops, attention.n_k, attention.n_q, blocked)


def recorded_layer_steps(checkpoint: RecordedCheckpoint, trace: Trace, layer: str, query: int) -> list[Step]:
    """The other calls of one row in a layer ("decoder.2"): norms, feed-forward, routers.

    Raises:
        TraceError: what `vizformer.recorder.RecordedTrace.layer_steps` raises; a layer that is not there.
    """
    run = checkpoint.again(trace)
    attention = app_sites(run).get(f"{layer}.self")
    call = None if attention is None else attention.steps[0][0]
    name = next((one.name for one in run.points if call and (one.stack, one.block) == (call.stack, call.block)), None)
    if attention is None or name is None:
        raise TraceError("{layer} is no layer whose block was found in this model.", layer=layer)
    return _steps(layer_ops(run, name, query, ROOM), -1, attention.n_q, None)


def _steps(ops: Sequence[OpStep], n_k: int, n_q: int, blocked: ndarray | None) -> list[Step]:
    """The steps of these calls; `of` of an operand is the index of such a step."""
    return [_step(number, op, n_k, n_q, blocked) for number, op in enumerate(ops)]


def _step(number: int, op: OpStep, n_k: int, n_q: int, blocked: ndarray | None) -> Step:
    result = _array(op.result)
    axes = _axes(op, result, n_k, n_q)
    operands = tuple(
        Operand(
            "x",
            _meaning(one.of, one.weight, one.of_text),
            value,
            ("features",) * value.ndim if one.weight else _axes(op, value, n_k, n_q),  # type: ignore[arg-type]
        )
        for one in op.operands
        if (value := _array(one.numbers)).size
    )
    contraction = _contraction(op, result)
    reason = N_("Not computed again in float64: {reason}.", reason=op.reason) if op.reason else None
    if op.edited:
        reason = N_(
            "Here the numbers set by hand take effect: z is computed with them, in the place of what the code gave."
        )
    shape = " × ".join(map(str, op.result.shape))
    kept = N_("{text} The whole result has the shape {shape}.", text=text(op), shape=shape)
    if not result.size:
        kept = N_("{text} Its numbers ({shape}) are too many to be kept.", text=text(op), shape=shape)
    entry = not op.operands
    dtype = name_of(op.result.x.dtype) if op.result.x is not None else "float32"
    return Step(
        f"op{number}",
        title(op),
        kept,
        formula(op),
        _live(result, contraction),
        "y",
        result,
        "" if op.source is None else op.source.text,
        Proof(
            N_("the numbers of the recorded run") if entry else N_("what this call gave in the model's own run"),
            op.error or 0.0,
            op.holds or op.error is None,
            direct=True,
            precision=dtype,
        ),
        operands,
        "y",
        contraction,
        blocked if blocked is not None and axes == ("keys",) and len(blocked) == result.shape[-1] else None,
        axes,
        op.edited,
        written=Written(where(op), "" if op.source is None else op.source.text, reason),
    )


def _array(numbers: Numbers) -> ndarray:
    """The numbers as a row or a matrix; empty if they were not kept."""
    if numbers.x is None:
        return np.zeros(0)
    x = float64(numbers.x.double() if numbers.x.is_floating_point() else numbers.x)
    x = x.reshape([n for n in x.shape if n > 1] or [1])
    return x if x.ndim < 3 else x.reshape(-1, x.shape[-1])


def _axes(op: OpStep, value: ndarray, n_k: int, n_q: int) -> tuple[Axis, ...]:
    over_keys = op.group in ("scores", "softmax", "weighted sum")
    first: Axis = "keys" if len(value) == n_k else "queries" if len(value) == n_q else "features"
    if value.ndim == 1:
        return ("keys",) if over_keys and len(value) == n_k else ("features",)
    last: Axis = "keys" if over_keys and value.shape[1] == n_k != value.shape[0] else "features"
    return "features" if last == "keys" else first, last


def _meaning(of: tuple[int, ...], weight: str, of_text: bool) -> Message:
    if weight:
        return N_("weights: {name}", name=weight)
    if of:
        return N_("from step {n}", n=", ".join(map(str, of)))
    return N_("numbers of this text") if of_text else N_("numbers that no text changes")


def _contraction(op: OpStep, result: ndarray) -> Contraction | None:
    """The sum behind a product of a row or matrix with a matrix; None if some of its numbers were not kept."""
    products = ("linear", "matmul", "bmm", "mm", "addmm", "einsum")
    fused = op.name == "scaled_dot_product_attention" and op.group == "weighted sum"
    if not (op.name in products or fused) or len(op.operands) < 2 or not result.size:
        return None
    values = [_array(one.numbers) for one in op.operands]
    add = None
    if op.name == "addmm":
        add, left, right = values[0], *values[1:3]
    else:
        left, right = values[:2]
        add = values[2] if op.name == "linear" and len(values) > 2 else None
    if op.name == "linear":
        right = right.reshape(result.shape[-1], -1).T
    rows = np.atleast_2d(result)
    left = left.reshape(1, -1) if left.ndim == 1 else left
    right = right if right.ndim == 2 else right.reshape(left.shape[1], -1) if right.size % left.shape[1] == 0 else right
    for a, b in ((left, right), (left, right.T)):
        if a.ndim == b.ndim == 2 and a.shape[1] == b.shape[0] and (a.shape[0], b.shape[1]) == rows.shape:
            found = Contraction(a, b, None if add is None or add.shape != (rows.shape[1],) else add)
            if np.allclose(found.total(), rows, rtol=1e-2, atol=1e-2 * max(1.0, float(np.abs(rows).max()))):
                return found
    return None


def _live(result: ndarray, contraction: Contraction | None) -> str:
    if not result.size:
        return r"\dots"
    first = float(np.atleast_2d(result)[0, 0])
    if contraction is None:
        return rf"y_0 = {latex.number(first)}"
    add = None if contraction.add is None else float(contraction.add[0])
    return rf"y_0 = {latex.sum_of_products(contraction.left[0], contraction.right[:, 0], add)} = {latex.number(first)}"


# The titles and formulas of the calls of a recorded model.
def title(op: OpStep) -> Message:
    if op.name in _ENTRIES:
        return _ENTRIES[op.name]
    if op.group in TITLES:
        return Message(TITLES[op.group], {"call": op.name})
    return (
        N_("{part}: {call}", part=op.group, call=op.name) if op.group else N_("The block itself: {call}", call=op.name)
    )


def text(op: OpStep) -> Message:
    """What a call does, and which calls before it only moved its operands."""
    about = _TEXTS.get(op.group) or N_("A call of the author's code for this row.")
    if op.name in _ENTRIES:
        return N_("{what} as it comes in.", what=_ENTRIES[op.name])
    if op.moves:
        return N_("{about} Before it, {moves} only put numbers elsewhere.", about=about, moves=", ".join(op.moves))
    return about


def where(op: OpStep) -> Message:
    if op.source is not None:
        return N_(
            "{file}, line {line}, in {module} ({kind})",
            file=op.source.file,
            line=op.source.line,
            module=op.module or "-",
            kind=op.module_class,
        )
    if op.name == "attention":
        return N_("an attention inside {module} ({kind})", module=op.module or "-", kind=op.module_class)
    if op.name in _ENTRIES:
        return N_("what enters {module} ({kind})", module=op.module or "-", kind=op.module_class)
    return N_("inside torch, in {module} ({kind})", module=op.module or "-", kind=op.module_class)


def formula(op: OpStep) -> str:
    if op.name == "scaled_dot_product_attention":
        return _FUSED.get(op.group, "y")
    if op.name in _ENTRIES:
        return r"x"
    if op.name == "linear" and len(op.operands) > 2:
        return r"y = x W^\top + b"
    name = "".join(c if c.isalnum() else r"\_" for c in op.name)
    return _FORMULAS.get(op.name, rf"y = \operatorname{{{name}}}(x)")
