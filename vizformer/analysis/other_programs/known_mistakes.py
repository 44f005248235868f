"""Which known mistake gives the numbers of a step that departs: each is tried, and what follows from it recomputed.

A mistake takes the place of one step of a layer (`vizformer.explain.layer_steps`); the code of the steps after it, up to
the one that was given, runs on what it left.  What comes out the same as the given numbers names the mistake.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.other_programs.first_departure import LOGITS, Steps, agrees, results, steps_of, unbatched
from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain import Step
from vizformer.explain.arrays import float64, is_half
from vizformer.explain.block_rows import block_at, norm_of
from vizformer.messages import N_, Message
from vizformer.model import Trace
from vizformer.model.positions import sinusoidal_encoding

# What each step of a layer leaves where it is got wrong in one of the ways that are known.
#
# A mistake is a sentence, and the names that the step leaves with other numbers than the right ones.

Names = dict[str, Any]
Mistake = tuple[Message, Mapping[str, Tensor]]
OTHER_EPS = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)  # that programs add in a norm


def of_step(
    checkpoint: AnyCheckpoint, trace: Trace, layer: str, step: Step, before: Names, after: Names
) -> Iterator[Mistake]:
    part = step.key.rpartition(".")[2]
    if part == "input":
        for said, x in _of_input(checkpoint, trace, layer):
            yield said, {"x": x}
    elif part in ("packed", "q", "k", "v"):
        yield from _of_projections(step, before, after)
    elif part == "heads":
        yield from _of_heads(before, after, cross="cross" in step.key)
    elif part in ("scores", "mask", "weights", "z"):
        yield from _of_attention(part, before, after, checkpoint.model.config.d_model)
    elif part == "concat":
        z = before["z"]
        yield (
            N_("The heads are joined with reshape or view alone: transpose(0, 1) has to come first."),
            {"joined": z.reshape(z.shape[1], -1)},
        )
    elif part in ("out", "narrow", "hidden"):
        yield from _of_linear(step, before, after)
    elif part == "activation":
        yield from _of_activation(step, before)
    elif part == "add":
        yield N_("The residual connection is missing: x + f(x), not f(x) alone."), _both(step, after["out"])
        if not step.key.startswith("self."):
            entering = trace.residual(f"{layer}.pre").double().cpu()
            yield (
                N_("The residual connection comes from the layer's input; what this sublayer reads is to be added."),
                _both(step, entering + after["out"]),
            )
    elif part == "norm":
        yield from _of_norm(checkpoint, layer, step, before)


def _both(step: Step, added: Tensor) -> Mapping[str, Tensor]:
    return {"added": added, "x": added} if "x = added" in step.code else {"added": added}


def _of_input(checkpoint: AnyCheckpoint, trace: Trace, layer: str) -> Iterator[tuple[Message, Tensor]]:
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
    if config.scaled_embedding:
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
        for said, waves in _of_waves(n, d):
            yield said, scale * rows + waves


def _of_waves(n: int, d: int) -> Iterator[tuple[Message, Tensor]]:
    """Sines and cosines in pairs with the wrong angles."""
    pos = torch.arange(n, dtype=torch.float64)[:, None]
    column = torch.arange(d, dtype=torch.float64)
    even, pair = column % 2 == 0, column - column % 2
    angle = pos / 10_000 ** (pair / d)
    slow = pos / 10_000 ** (1 - pair / d)
    yield (
        N_("The slow waves stand in the low dimensions; the fast ones belong there."),
        torch.where(even, slow.sin(), slow.cos()),
    )
    yield (
        N_("Sine and cosine are exchanged: sines belong in the even dimensions, from 0 on."),
        torch.where(even, angle.cos(), angle.sin()),
    )
    half = pos / 10_000 ** (pair / 2 / d)
    yield (N_("The exponent counts the pairs, i / d; it is 2i / d."), torch.where(even, half.sin(), half.cos()))
    own = pos / 10_000 ** (column / d)
    yield (
        N_("Each cosine has an angle of its own; it takes that of the sine before it."),
        torch.where(even, own.sin(), own.cos()),
    )


def _of_projections(step: Step, before: Names, after: Names) -> Iterator[Mistake]:
    x = after["memory"] if "memory" in step.inputs else before["x"]
    weights = [name for name in after if name.startswith("W_") and name in step.inputs]
    biases = [name for name in step.inputs if name.startswith("b_")]
    square = all(after[name].shape[0] == after[name].shape[1] for name in weights)
    for wrong in (weights, *([name] for name in weights if len(weights) > 1)):  # all of them, or one alone
        if square:
            turned = torch.cat([after[name].T if name in wrong else after[name] for name in weights], dim=1)
            bias = torch.cat([after[name] for name in biases]) if biases else 0.0
            yield (
                N_("W is transposed: nn.Linear keeps W as [out, in] and computes x Wᵀ."),
                {step.variable: x @ turned + bias},
            )
        if biases:
            straight = torch.cat([after[name] for name in weights], dim=1)
            kept = [after[name] * (name.replace("b_", "W_") not in wrong) for name in biases]
            yield N_("The bias of the projection is missing."), {step.variable: x @ straight + torch.cat(kept)}


def _of_heads(before: Names, after: Names, *, cross: bool) -> Iterator[Mistake]:
    q, k, v = after["q"], after["k"], after["v"]
    flat = {name: value.transpose(0, 1).flatten(1) for name, value in (("q", q), ("k", k), ("v", v))}
    cut = {name: flat[name].reshape(value.shape) for name, value in (("q", q), ("k", k), ("v", v))}
    yield N_("The heads are cut with reshape or view alone: [n, heads, d_k] has to come first, then transpose."), cut
    if q.shape == k.shape:
        yield N_("Queries and keys are exchanged."), {"q": k, "k": q}
    if k.shape == v.shape:
        yield N_("Keys and values are exchanged."), {"k": v, "v": k}
    width = q.shape[-1]
    # [n, d_k, heads]: neighbours go to different heads
    strided = {name: value.unflatten(-1, (width, -1)).permute(2, 0, 1) for name, value in flat.items() if len(value)}
    yield N_("The heads are cut the other way round: each takes neighbouring numbers, d_k in a row."), strided
    if cross:
        for said, letters, source in (
            (N_("Keys and values come from the decoder; in cross-attention they come from the encoder."), "kv", "x"),
            (N_("The queries come from the encoder; in cross-attention they come from the decoder."), "q", "memory"),
        ):
            rows = {c: before[source] @ before[f"W_{c.upper()}"] + before.get(f"b_{c.upper()}", 0.0) for c in letters}
            yield said, {c: x.unflatten(-1, (-1, after[c].shape[-1])).transpose(0, 1) for c, x in rows.items()}


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


def _of_linear(step: Step, before: Names, after: Names) -> Iterator[Mistake]:
    weight = next(after[name] for name in step.inputs if name.startswith("W_"))
    bias = next((after[name] for name in step.inputs if name.startswith("b_")), None)
    out = after[step.variable]
    if bias is not None:
        yield N_("The bias of this matrix is missing."), {step.variable: out - bias}
    if weight.shape[0] == weight.shape[1]:
        source = after["joined"] if step.key.endswith("out") else after["x"]
        turned = source @ weight.T + (0.0 if bias is None else bias)
        yield N_("W is transposed: nn.Linear keeps W as [out, in] and computes x Wᵀ."), {step.variable: turned}
    if step.key.endswith(".out"):
        yield (
            N_("The output matrix W_O is missing: the joined heads are not yet the result."),
            {"out": before["joined"]},
        )
    elif step.key.endswith(".narrow") and "gate" not in before:
        late = F.relu(before["hidden"] @ weight + (0.0 if bias is None else bias))
        yield N_("The activation function comes after the second matrix; it belongs between the two."), {"out": late}


def _of_activation(step: Step, before: Names) -> Iterator[Mistake]:
    reads = "gate" if "(gate)" in step.code else "hidden"
    x = before[reads]
    others = {"ReLU": F.relu(x), "GELU": F.gelu(x), "GELU (tanh)": F.gelu(x, approximate="tanh"), "SiLU": F.silu(x)}
    yield N_("The activation function is missing."), {step.variable: x}
    for name, value in others.items():
        yield N_("The activation function is {name}; this model has another one.", name=name), {step.variable: value}


def _of_norm(checkpoint: AnyCheckpoint, layer: str, step: Step, before: Names) -> Iterator[Mistake]:
    if "F.layer_norm" not in step.code:
        return
    inputs = {name: x.double().cpu() for name, x in step.inputs.items()}
    gamma, beta = inputs["gamma"], inputs["beta"]
    kind: Any = step.key.split(".")[0]
    own = norm_of(block_at(checkpoint, layer), kind).eps
    assert own is not None
    eps = float(own)
    x = before["added"] if "layer_norm(added" in step.code else before["residual"]
    width = (x.shape[-1],)
    yield N_("The norm is missing."), {"x": x}
    yield N_("The norm's γ and β are missing."), {"x": F.layer_norm(x, width, eps=eps)}
    centred = x - x.mean(-1, keepdim=True)
    variance = x.var(-1, keepdim=True, correction=0)
    yield (
        N_("The norm divides by the deviation with n − 1; LayerNorm takes n (unbiased=False)."),
        {"x": centred / (x.var(-1, keepdim=True) + eps).sqrt() * gamma + beta},
    )
    yield (
        N_("The mean is not taken off: this is an RMSNorm."),
        {"x": x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * gamma + beta},
    )
    yield (
        N_("The mean is not taken off before the division, though the deviation is from it."),
        {"x": x / (variance + eps).sqrt() * gamma + beta},
    )
    yield (
        N_("The norm's γ and β are exchanged: γ multiplies, β is added."),
        {"x": centred / (variance + eps).sqrt() * beta + gamma},
    )
    yield (
        N_("The norm divides by the variance; its root belongs there."),
        {"x": centred / (variance + eps) * gamma + beta},
    )
    for other in OTHER_EPS:
        if other != eps:
            yield (
                N_("The norm's ε is {other}; here it is {eps}.", other=f"{other:g}", eps=f"{eps:g}"),
                {"x": centred / (variance + other).sqrt() * gamma + beta},
            )
    if eps != 0:
        yield (
            N_("The norm's ε is left out; here it is {eps}.", eps=f"{eps:g}"),
            {"x": centred / variance.sqrt() * gamma + beta},
        )
    yield (
        N_("The norm's ε is added to the deviation; it belongs to the variance, inside the root."),
        {"x": centred / (variance.sqrt() + eps) * gamma + beta},
    )
    if len(x) > 1:
        over = (x - x.mean(0)) / (x.var(0, correction=0) + eps).sqrt() * gamma + beta
        yield N_("The norm runs over the tokens; it has to run over the numbers of each token."), {"x": over}
    if "out" in before and "layer_norm(added" in step.code:
        residual, out = before["residual"], before["out"]
        yield (
            N_("The norm comes before the sum (pre-norm); this model normalises the sum."),
            {"x": residual + F.layer_norm(out, width, gamma, beta, eps)},
        )
        yield (
            N_("The norm is of what entered alone, LN(x) + f(x); this model normalises the sum, LN(x + f(x))."),
            {"x": F.layer_norm(residual, width, gamma, beta, eps) + out},
        )
        yield N_("This sublayer is left out, with its add & norm."), {"x": residual}


def mistakes_of_logits(trace: Trace) -> Iterator[tuple[Message, Tensor]]:
    logits = trace.logits.double().cpu()
    yield N_("These are probabilities: a softmax has been taken of the logits."), torch.softmax(logits, dim=-1)
    yield (
        N_("These are log-probabilities: a log-softmax has been taken of the logits."),
        torch.log_softmax(logits, dim=-1),
    )


MOST = 6  # that are named


def hints(
    checkpoint: AnyCheckpoint,
    trace: Trace,
    name: str,
    given: ndarray,
    agreed: tuple[str, ...],
    tolerance: float,
    steps: Steps | None = None,
) -> tuple[Message, ...]:
    """Hints about a step that differs: mistakes in it, or between it and the last step that agreed.

    A mistake that was made in a step before this one is told with the name of that step.  `steps`: as in
    `first_departure.named`.
    """
    if name == LOGITS:
        value = float64(trace.logits)
        of_logits = [said for said, wrong in mistakes_of_logits(trace) if same(wrong, given, tolerance)]
        return tuple(of_logits) or general(given, value, tolerance)
    steps = steps or steps_of(checkpoint, trace)
    found = tried(checkpoint, trace, {name: given}, agreed, tolerance, steps)
    layer = ".".join(name.split(".")[:2])
    value = next(value for step, _, _, value in results(steps(layer), layer) if step == name)
    return tuple(said for said, _ in found[:MOST]) or general(given, value, tolerance)


def tried(
    checkpoint: AnyCheckpoint,
    trace: Trace,
    given: Mapping[str, ndarray],
    agreed: Sequence[str],
    tolerance: float,
    steps_of_layer: Steps | None = None,
) -> list[tuple[Message, bool]]:
    """The mistakes that give the first of these results of a layer, and of each whether it gives the others too.

    Args:
        given: by the names of their steps, in the order of the layer; the first departs.
        agreed: steps before that one, from the last of which on mistakes are looked for.
        steps_of_layer: `first_departure.steps_of` the trace, where others ask them too.
    """
    first, *others = given
    layer = ".".join(first.split(".")[:2])
    steps = (steps_of_layer or steps_of(checkpoint, trace))(layer)
    # its code rounds on purpose: not in float64
    if any(is_half(x.dtype) for step in steps for x in step.inputs.values()):
        return []
    places = {found: (index, variable) for index, variable, found in _places(steps, layer)}
    target = places[first][0]
    start = max((places[one][0] + 1 for one in agreed if one in places and places[one][0] < target), default=0)
    before = _names_before(steps)
    found: list[tuple[Message, bool]] = []
    for index in range(start, target + 1):
        for said, wrong in of_step(checkpoint, trace, layer, steps[index], before[index], before[index + 1]):
            left = {**before[index + 1], **wrong}

            def gives(name: str, index: int = index, left: Names = left) -> bool:
                at, variable = places[name]
                reached = _follow(steps, index, at, left)
                return reached is not None and same(reached[variable], given[name], tolerance)

            if not gives(first):
                continue
            if index != target:
                said = N_("{step}: {said}", step=f"{layer}.{steps[index].key}", said=said)
            if said not in [one for one, _ in found]:
                found.append((said, all(map(gives, others))))
    return found


def _places(steps: list[Step], layer: str) -> Iterator[tuple[int, str, str]]:
    index = {step.key: number for number, step in enumerate(steps)}
    for name, step, variable, _ in results(steps, layer):
        yield index[step.key], variable, name


def same(wrong: object, given: ndarray, tolerance: float) -> bool:
    """Whether a mistake gives the numbers that were given.

    Where it leaves no number (a row of which all is blocked), there may be none in what was given, or zeros.
    """
    values = float64(wrong) if isinstance(wrong, Tensor) else np.asarray(wrong)
    own = unbatched(given, values.ndim)
    if own.shape != values.shape:
        return False
    none = np.isnan(values)
    return bool((agrees(own, values, tolerance) | (none & (np.isnan(own) | (own == 0)))).all())


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
        elif _begins(steps, index) and "x" in names:
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
            if _begins(steps, following) and "x" in names:
                names["residual"] = names["x"]
            _run(steps[following], names)
    except (RuntimeError, ValueError, IndexError):
        return None
    return names


def general(given: ndarray, value: ndarray, tolerance: float) -> tuple[Message, ...]:
    """Hints that follow from the numbers alone: exchanged axes, another shape, a constant factor, another order."""
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
    if usable.sum() > 1:  # of one number there always is such a factor
        ratio = float(np.median(own[usable] / value[usable]))
        with np.errstate(invalid="ignore"):
            scaled = np.where(np.isfinite(value), value * ratio, value)
        if abs(ratio - 1) > 1e-3 and agrees(own, scaled, tolerance * max(1.0, abs(ratio))).all():
            return (N_("Every number is {ratio} times the right one.", ratio=f"{ratio:.4g}"),)
    if value.size and agrees(np.sort(own, None), np.sort(value, None), tolerance).all():
        return (N_("These are the right numbers in another order."),)
    return ()
