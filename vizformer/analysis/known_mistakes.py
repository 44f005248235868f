"""Which known mistake gives the numbers of a step that departs: each is tried, and what follows from it recomputed.

A mistake takes the place of one step of a layer (`vizformer.explain.layer_steps`); the code of the steps after it, up to
the one that was given, runs on what it left.  What comes out the same as the given numbers names the mistake.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy import ndarray
from torch import Tensor

from vizformer.analysis import copied_errors
from vizformer.analysis.first_departure import LOGITS, agrees, results, unbatched
from vizformer.checkpoints import Checkpoint
from vizformer.explain import Step, layer_steps
from vizformer.explain.arrays import float64
from vizformer.messages import N_, Message
from vizformer.model import Trace
from vizformer.model.positions import sinusoidal_encoding

Names = dict[str, Any]
MOST = 3  # that are named
Mistake = tuple[Message, Mapping[str, Tensor]]


def hints(
    checkpoint: Checkpoint, trace: Trace, name: str, given: ndarray, agreed: tuple[str, ...], tolerance: float
) -> tuple[Message, ...]:
    """What may have gone wrong in a step that departs, or between it and the last one that agreed.

    Args:
        name, given: the step and its numbers.
        agreed: names of steps that were given and agree.
        tolerance: as in `first_departure.compare`.
    """
    if name == LOGITS:
        value = float64(trace.logits)
        found = [said for said, wrong in _of_logits(trace) if _same(wrong, given, tolerance)]
        return tuple(found) or _general(given, value, tolerance)
    layer = ".".join(name.split(".")[:2])
    steps = layer_steps(checkpoint, trace, layer)
    places = {found: (index, variable) for index, variable, found in _places(steps, layer)}
    target, variable = places[name]
    value = next(value for found, _, _, value in results(steps, layer) if found == name)
    general = _general(given, value, tolerance)
    if checkpoint.model.config.residual == "parallel":  # whose sublayers both read what entered the layer
        return general
    start = max((places[one][0] + 1 for one in agreed if one in places and places[one][0] < target), default=0)
    before = _names_before(steps)
    found = []
    for index in range(start, target + 1):
        for said, wrong in _mistakes(checkpoint, trace, layer, steps[index], before[index], before[index + 1]):
            reached = _follow(steps, index, target, {**before[index + 1], **wrong})
            if reached is not None and _same(reached[variable], given, tolerance) and said not in found:
                found.append(said)
    return tuple(found[:MOST]) or general


def _places(steps: list[Step], layer: str) -> Iterator[tuple[int, str, str]]:
    index = {step.key: number for number, step in enumerate(steps)}
    for name, step, variable, _ in results(steps, layer):
        yield index[step.key], variable, name


def _same(wrong: object, given: ndarray, tolerance: float) -> bool:
    values = float64(wrong) if isinstance(wrong, Tensor) else np.asarray(wrong)
    own = unbatched(given, values.ndim)
    return own.shape == values.shape and bool(agrees(own, values, tolerance).all())


def _run(step: Step, names: Names) -> None:
    """Runs the code of a step (a constant of this project) on these names, in float64."""
    inputs = {name: x.double() if x.is_floating_point() else x for name, x in step.inputs.items() if name != "residual"}
    names.update({name: x.cpu() for name, x in inputs.items()})
    with torch.no_grad():
        exec(step.code, names)


def _names_before(steps: list[Step]) -> list[Names]:
    """The names that there are before each step, and after the last one."""
    names: Names = {"torch": torch, "F": F, "math": math}
    found = []
    for index, step in enumerate(steps):
        if "residual" in step.inputs and (index == 0 or _begins(steps, index)):
            names["residual"] = step.inputs["residual"].double().cpu()
        elif _begins(steps, index):
            names["residual"] = names["x"]
        found.append(dict(names))
        _run(step, names)
    return [*found, dict(names)]


def _begins(steps: list[Step], index: int) -> bool:
    """Whether a sublayer begins with this step."""
    return index > 0 and steps[index].key.split(".")[0] != steps[index - 1].key.split(".")[0]


def _follow(steps: list[Step], index: int, target: int, names: Names) -> Names | None:
    """The names after the step `target`, from those that the step `index` left; None where a shape does not fit."""
    names = dict(names)
    try:
        for following in range(index + 1, target + 1):
            if _begins(steps, following):
                names["residual"] = names["x"]
            _run(steps[following], names)
    except (RuntimeError, ValueError, IndexError):
        return None
    return names


# --- the mistakes, step by step ---------------------------------------------------------------------------------------


def _mistakes(
    checkpoint: Checkpoint, trace: Trace, layer: str, step: Step, before: Names, after: Names
) -> Iterator[Mistake]:
    """What a step leaves where it is got wrong."""
    part = step.key.rpartition(".")[2]
    if part == "input":
        for said, x in _of_input(checkpoint, trace, layer):
            yield said, {"x": x}
    elif part in ("packed", "q", "k", "v"):
        yield from _of_projections(step, before, after)
    elif part == "heads":
        yield from _of_heads(before, after)
    elif part in ("scores", "mask", "weights", "z"):
        yield from _of_attention(part, before, after, checkpoint.model.config.d_model)
    elif part == "concat":
        z = before["z"]
        yield (
            N_("The heads are joined with reshape or view alone: transpose(0, 1) has to come first."),
            {"joined": z.reshape(z.shape[1], -1)},
        )
    elif part in ("out", "narrow", "hidden"):
        yield from _of_linear(step, after)
    elif part == "activation":
        yield from _of_activation(step, before)
    elif part == "add":
        yield N_("The residual connection is missing: x + f(x), not f(x) alone."), _both(step, after["out"])
    elif part == "norm":
        yield from _of_norm(step, before)


def _both(step: Step, added: Tensor) -> Mapping[str, Tensor]:
    return {"added": added, "x": added} if "x = added" in step.code else {"added": added}


def _of_input(checkpoint: Checkpoint, trace: Trace, layer: str) -> Iterator[tuple[Message, Tensor]]:
    model, stack = checkpoint.model, layer.split(".")[0]
    config = model.config
    if layer != f"{stack}.0" or config.embedding_norm or config.n_segments or stack not in ("encoder", "decoder"):
        return
    side: Any = stack
    tokens = trace.tokens[stack]
    rows = model.token_table(side)(checkpoint.tensor(tokens))[0].detach().double().cpu()
    n, d = rows.shape
    root = math.sqrt(d)
    table = model.positions(n, side)
    P = torch.zeros(n, d, dtype=torch.float64) if table is None else table.detach().double().cpu()
    scale = config.embedding_factor
    if config.embedding_scale != 1:
        yield N_("The rows of the embedding are not multiplied by {scale}.", scale=f"{scale:g}"), rows + P
    elif config.scaled_embedding:
        yield N_("The rows of the embedding are not multiplied by √d_model."), rows + P
        yield N_("The sum is multiplied by √d_model; only the rows of the embedding are to be."), root * (rows + P)
    else:
        yield N_("The rows of the embedding are multiplied by √d_model; this model does not do that."), root * rows + P
    if table is None:
        yield (
            N_("Positions are added to the embedding; this model adds none."),
            scale * rows + sinusoidal_encoding(n, d),
        )
        return
    yield N_("Nothing is added for the positions."), scale * rows
    if n < config.max_positions:
        longer = model.positions(n + 1, side)
        assert longer is not None
        yield N_("Positions are counted from 1; the first one is 0."), scale * rows + longer[1:].double().cpu()
    if config.positions == "sinusoidal" and d % 2 == 0:
        halves = sinusoidal_encoding(n, d, "interleaved" if config.sinusoids == "halves" else "halves").double()
        yield N_("Sines and cosines stand in another order: pair by pair, or all sines first."), scale * rows + halves
        slow = copied_errors.run("waves", {"n": n, "d": d}, corrected=False).names["P"].double()
        yield N_("The slow waves stand in the low dimensions; the fast ones belong there."), scale * rows + slow


def _of_projections(step: Step, before: Names, after: Names) -> Iterator[Mistake]:
    x = after["memory"] if "memory" in step.inputs else before["x"]
    weights = [name for name in after if name.startswith("W_") and name in step.inputs]
    biases = [name for name in step.inputs if name.startswith("b_")]
    square = all(after[name].shape[0] == after[name].shape[1] for name in weights)
    bias = torch.cat([after[name] for name in biases]) if biases else 0.0
    if square:
        turned = torch.cat([after[name].T for name in weights], dim=1)
        yield (
            N_("W is transposed: nn.Linear keeps W as [out, in] and computes x Wᵀ."),
            {step.variable: x @ turned + bias},
        )
    if biases:
        straight = torch.cat([after[name] for name in weights], dim=1)
        yield N_("The bias of the projection is missing."), {step.variable: x @ straight}


def _of_heads(before: Names, after: Names) -> Iterator[Mistake]:
    q, k, v = after["q"], after["k"], after["v"]
    flat = {name: value.transpose(0, 1).flatten(1) for name, value in (("q", q), ("k", k), ("v", v))}
    cut = {name: flat[name].reshape(value.shape) for name, value in (("q", q), ("k", k), ("v", v))}
    yield N_("The heads are cut with reshape or view alone: [n, heads, d_k] has to come first, then transpose."), cut
    if q.shape == k.shape:
        yield N_("Queries and keys are exchanged."), {"q": k, "k": q}
    if k.shape == v.shape:
        yield N_("Keys and values are exchanged."), {"k": v, "v": k}
    width = q.shape[-1]
    strided = {
        name: value.unflatten(-1, (width, -1)).permute(2, 0, 1) for name, value in flat.items() if len(value)
    }  # [n, d_k, heads]: neighbours go to different heads
    yield N_("The heads are cut the other way round: each takes neighbouring numbers, d_k in a row."), strided


def _of_attention(part: str, before: Names, after: Names, d_model: int) -> Iterator[Mistake]:
    if part == "scores":
        s, d_k = after["scores"], after["q"].shape[-1]
        yield N_("The scores are not divided by √d_k."), {"scores": s * math.sqrt(d_k)}
        yield (
            N_("The scores are divided by √d_model; √d_k, the width of one head, belongs there."),
            {"scores": s * math.sqrt(d_k / d_model)},
        )
        yield N_("The scores are divided by d_k, without the root."), {"scores": s / math.sqrt(d_k)}
        yield N_("Queries and keys have changed places: rows are queries, columns are keys."), {"scores": s.mT}
    elif part == "mask":
        s, mask = before["scores"], after["mask"]
        blocked = torch.isneginf(mask)
        yield N_("The mask is missing: queries see keys that are blocked."), {"scores": s}
        yield (
            N_("Blocked scores are set to 0; −∞ belongs there, since e⁰ = 1."),
            {"scores": s.masked_fill(blocked, 0.0)},
        )
        if mask.shape[-1] == mask.shape[-2]:
            yield N_("The mask is turned over: it blocks the past, not the future."), {"scores": s + mask.mT}
        yield (
            N_("The mask is read the other way round: what it should show it blocks."),
            {"scores": s.masked_fill(~blocked.expand(s.shape), -torch.inf)},
        )
    elif part == "weights":
        s = before["scores"]
        blocked = torch.isneginf(s)
        yield (
            N_("The softmax runs over the wrong axis: over the queries, not over the keys (dim=-1)."),
            {"weights": torch.softmax(s, dim=-2)},
        )
        yield (
            N_("The softmax runs over the heads: over the keys (dim=-1) it has to."),
            {"weights": torch.softmax(s, dim=0)},
        )
        yield N_("The softmax is missing."), {"weights": s}
        if bool(blocked.any()):
            open_ = before["q"] @ before["k"].mT / math.sqrt(before["q"].shape[-1])
            yield (
                N_("The mask comes after the softmax: rows do not sum to 1."),
                {"weights": torch.softmax(open_, dim=-1).masked_fill(blocked, 0.0)},
            )
    else:
        weights, v, k = before["weights"], before["v"], before["k"]
        if weights.shape[-1] == weights.shape[-2]:
            yield N_("The weights are transposed before they mix the values."), {"z": weights.mT @ v}
        if k.shape == v.shape:
            yield N_("The weights mix the keys; they are to mix the values."), {"z": weights @ k}


def _of_linear(step: Step, after: Names) -> Iterator[Mistake]:
    weight = next(after[name] for name in step.inputs if name.startswith("W_"))
    bias = next((after[name] for name in step.inputs if name.startswith("b_")), None)
    out = after[step.variable]
    if bias is not None:
        yield N_("The bias of this matrix is missing."), {step.variable: out - bias}
    if weight.shape[0] == weight.shape[1]:
        source = after["joined"] if step.key.endswith("out") else after["x"]
        turned = source @ weight.T + (0.0 if bias is None else bias)
        yield N_("W is transposed: nn.Linear keeps W as [out, in] and computes x Wᵀ."), {step.variable: turned}


def _of_activation(step: Step, before: Names) -> Iterator[Mistake]:
    reads = "gate" if "(gate)" in step.code else "hidden"
    x = before[reads]
    others = {
        "ReLU": F.relu(x),
        "GELU": F.gelu(x),
        "GELU (tanh)": F.gelu(x, approximate="tanh"),
        "SiLU": F.silu(x),
    }
    yield N_("The activation function is missing."), {step.variable: x}
    for name, value in others.items():
        yield N_("The activation function is {name}; this model has another one.", name=name), {step.variable: value}


def _of_norm(step: Step, before: Names) -> Iterator[Mistake]:
    if "F.layer_norm" not in step.code:
        return
    inputs = {name: x.double().cpu() for name, x in step.inputs.items()}
    gamma, beta, eps = inputs["gamma"], inputs["beta"], 1e-5
    x = before["added"] if "layer_norm(added" in step.code else before["residual"]
    width = (x.shape[-1],)
    yield N_("The norm is missing."), {"x": x}
    yield N_("The norm's γ and β are missing."), {"x": F.layer_norm(x, width)}
    centred = x - x.mean(-1, keepdim=True)
    yield (
        N_("The norm divides by the deviation with n − 1; LayerNorm takes n (unbiased=False)."),
        {"x": centred / (x.var(-1, keepdim=True) + eps).sqrt() * gamma + beta},
    )
    yield (
        N_("The mean is not taken off: this is an RMSNorm."),
        {"x": x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * gamma + beta},
    )
    if len(x) > 1:
        over = (x - x.mean(0)) / (x.var(0, correction=0) + eps).sqrt() * gamma + beta
        yield N_("The norm runs over the tokens; it has to run over the numbers of each token."), {"x": over}
    if "out" in before and "layer_norm(added" in step.code:
        yield (
            N_("The norm comes before the sum (pre-norm); this model normalises the sum."),
            {"x": before["residual"] + F.layer_norm(before["out"], width, gamma, beta)},
        )


def _of_logits(trace: Trace) -> Iterator[tuple[Message, Tensor]]:
    logits = trace.logits.double().cpu()
    yield N_("These are probabilities: a softmax has been taken of the logits."), torch.softmax(logits, dim=-1)
    yield (
        N_("These are log-probabilities: a log-softmax has been taken of the logits."),
        torch.log_softmax(logits, dim=-1),
    )


def _general(given: ndarray, value: ndarray, tolerance: float) -> tuple[Message, ...]:
    """What can be said without knowing how the numbers were made."""
    own = unbatched(given, value.ndim).astype(np.float64)
    if value.ndim >= 2 and own.shape == np.swapaxes(value, -1, -2).shape and value.shape[-1] != value.shape[-2]:
        turned = np.swapaxes(value, -1, -2)
        if agrees(own, turned, tolerance).all():
            return (N_("These are the right numbers with the last two axes exchanged."),)
    if own.shape != value.shape:
        if own.size == value.size and value.size and agrees(np.sort(own, None), np.sort(value, None), tolerance).all():
            return (N_("These are the right numbers in another shape."),)
        return ()
    usable = np.isfinite(own) & np.isfinite(value) & (np.abs(value) > 1e-3)
    if usable.any():
        ratio = float(np.median(own[usable] / value[usable]))
        with np.errstate(invalid="ignore"):
            scaled = np.where(np.isfinite(value), value * ratio, value)
        if abs(ratio - 1) > 1e-3 and agrees(own, scaled, tolerance * max(1.0, abs(ratio))).all():
            return (N_("Every number is {ratio} times the right one.", ratio=f"{ratio:.4g}"),)
    if value.size and agrees(np.sort(own, None), np.sort(value, None), tolerance).all():
        return (N_("These are the right numbers in another order."),)
    return ()
