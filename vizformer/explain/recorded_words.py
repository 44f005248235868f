"""The titles and formulas of the calls of a recorded model."""

from vizformer.messages import N_, Message
from vizformer.recorder.op_steps import OpStep

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
