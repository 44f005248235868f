"""The arithmetic of the boxes of the lesson The map, as LaTeX."""

from vizformer.analysis.costs.model_boxes import Box
from vizformer.config import ModelConfig
from vizformer.options.feedforward import ACTIVATION_NAMES

_FORMULAS = {
    "embedding": r"x_i = E_{t_i}",
    "segments": r"x_i \leftarrow x_i + S_{s_i}",
    "positions": r"x_i \leftarrow x_i + P_i",
    "mask": r"M_{ij} = -\infty \ \text{if}\ j > i, \ \text{else}\ 0",
    "rotation": r"q_i \leftarrow R_i\, q_i,\quad k_j \leftarrow R_j\, k_j",
    "alibi": r"\text{scores}_{ij} \leftarrow \text{scores}_{ij} - m_h\,|i - j|",
    "relative": r"\text{scores}_{ij} \leftarrow \text{scores}_{ij} + b_{h,\,\text{bucket}(j - i)}",
    "add": r"x \leftarrow x + f(\operatorname{norm}(x))",
    "add_norm": r"x \leftarrow \operatorname{norm}(x + f(x))",
    "unembedding": r"\text{logits} = x\, W_U",
    "logit_bias": r"\text{logits} \leftarrow \text{logits} + b",
    "softmax": r"p_j = e^{\,\text{logit}_j} \big/ \textstyle\sum_m e^{\,\text{logit}_m}",
}


def _feedforward(config: ModelConfig) -> str:
    """The formula of a feed-forward network as LaTeX, with the name of its activation and its biases."""
    bends = rf"\operatorname{{{ACTIVATION_NAMES[config.activation]}}}"
    into, gate, out = (rf" + b_\text{{{name}}}" if config.bias else "" for name in ("in", "gate", "out"))
    if config.feedforward == "gated":
        spread = rf"(x W_\text{{in}}{into})" if config.bias else r"x W_\text{in}"
        return rf"({bends}(x W_\text{{gate}}{gate}) \odot {spread})\, W_\text{{out}}{out}"
    return rf"{bends}(x W_\text{{in}}{into})\, W_\text{{out}}{out}"


def formula(box: Box, config: ModelConfig) -> str:
    """The formula of a box as LaTeX; "" where it has none."""
    if box.kind == "embedding" and config.scaled_embedding:
        return r"x_i = \sqrt{d_\text{model}}\; E_{t_i}"
    if box.kind == "add":
        inner = r"\operatorname{norm}(x)" if config.norm_order == "pre" else "x"
        return rf"x \leftarrow x + f({inner})"
    if box.kind == "unembedding" and config.logit_scale != 1:
        return rf"\text{{logits}} = {config.logit_scale:.4g}\; x\, W_U"
    if box.kind == "mask" and box.section == "encoder":
        return rf"M_{{ij}} = -\infty \ \text{{if}}\ |i - j| \ge {config.sliding_window}, \ \text{{else}}\ 0"
    if box.kind == "mask" and (window := config.sliding_window) is not None:
        return rf"M_{{ij}} = -\infty \ \text{{if}}\ j > i \ \text{{or}}\ j \le i - {window}, \ \text{{else}}\ 0"
    if box.kind == "attention":
        mask = " + M" if box.section == "decoder" or config.sliding_window is not None else ""
        scores = config.scores_formula(r"QK^{\top}")
        return rf"\operatorname{{softmax}}\!\left({scores}{mask}\right) V"
    if box.kind == "cross":
        scores = config.scores_formula(r"Q_\text{dec} K_\text{enc}^{\top}")
        return rf"\operatorname{{softmax}}\!\left({scores}\right) V_\text{{enc}}"
    if box.kind == "norm":
        if config.norm == "rms_norm":
            return r"\frac{x}{\sqrt{\operatorname{mean}(x^2) + \epsilon}} \odot w"
        return r"\frac{x - \operatorname{mean}(x)}{\sqrt{\operatorname{var}(x) + \epsilon}} \odot w + b"
    if box.kind == "feedforward":
        return _feedforward(config)
    return _FORMULAS.get(box.kind, "")
