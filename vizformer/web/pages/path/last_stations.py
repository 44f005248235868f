"""Stations 9 to 12: the rest of a layer, the decoder's look at the source, writing, the loss."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vizformer.analysis.one_forward import station_numbers
from vizformer.analysis.one_forward.followed_token import FollowedToken
from vizformer.analysis.one_forward.station_numbers import FACTORS, TEMPERATURES
from vizformer.components.stations import Bars, Chips, Curve, Frame, Grid, Show, Station, Step, Turn
from vizformer.config import ModelConfig
from vizformer.web.widgets.model_suggestions import words_with_meaning
from vizformer.web.widgets.whole_model.sentence import Sentence, asked, best_of, each, fixed, number, share, words_of
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

_MAPS = 4  # heads whose maps are compared
_LARGEST = 80  # score whose power is written out
_VALUES = 5  # value rows that are shown, those of the largest weights


def layer(about: Sentence) -> Station:
    """A row before and after attention and the network; the same row from layer to layer."""
    say, found = words_of("layer"), about.found
    title = words_of("rows")("cells", cells=found.sublayers.cells.shape[1], width=found.width)
    lengths = [say("length", length=_length(float(one))) for one in found.sublayers.lengths]
    names = _sublayer_names(found, about.subject.config)
    frame: Frame = [Grid(title, names, [], found.sublayers.cells, signed=True, notes=lengths)]
    frames: list[Frame] = []
    ticks = _layer_names(found)
    for index in range(len(found.layers.cells)):
        rows = found.layers.cells[[0, index]]
        notes = ["", say("cosine", cosine=number(float(found.cosines[index])))]
        frames.append([Grid(title, [ticks[0], ticks[index]], [], rows, signed=True, lit=1, notes=notes)])
    steps: list[Step] = [
        Show(say("see") + _norm(about.subject.config), frame),
        asked(say, fixed(say, ("none", "beside", "all")), 0, frame, token=about.token),
        Turn(say("turn", layers=len(ticks) - 1, token=about.token), say("after"), ticks, frames, len(ticks) - 1),
    ]
    return Station("layer", say("title"), steps)


def _norm(config: ModelConfig) -> str:
    """What the norms of the layers do to a row; empty where there are none."""
    if config.norm_order == "none":
        return ""
    return words_of("layer")("norm", form="root_mean_square" if config.norm == "rms_norm" else "variance")


def cross(about: Sentence) -> Station | None:
    """Where the rows of the decoder look in the source; None where there is no encoder to look at."""
    look, writing = about.found.cross, about.found.writing
    if look is None or writing is None:
        return None
    say, sources = words_of("cross"), words_with_meaning(about.subject.text, about.texts)
    nexts = [choice.next.text for choice in writing.choices][: len(look.weights)]
    at, best = look.query, int(np.argmax(look.weights[look.query]))
    weights = [float(weight) for weight in look.weights[at]]
    both: Frame = [Chips(sources), Chips(nexts, lit=[at])]
    steps: list[Step] = [Show(say("see"), both)]
    if (chosen := best_of(sources, weights)) is not None and best in chosen:
        given = each(say, sources, chosen, best, list(map(number, weights)))
        site = {"layer": look.layer, "head": look.head}
        steps.append(asked(say, given, chosen.index(best), both, next=nexts[at], **site))
    title = say("site", layer=look.layer, head=look.head)
    steps.append(Show(say("answer"), [Grid(title, nexts, sources, look.weights[: len(nexts)], lit=at)]))
    frames: list[Frame] = []
    for row in range(len(nexts)):
        shown = [float(weight) for weight in look.weights[row]]
        frames.append([
            Chips(nexts, lit=[row]),
            Bars(title, sources, shown, list(map(number, shown)), 1.0, int(np.argmax(shown)), upright=True),
        ])  # fmt: skip
    ticks = [f"{row + 1} · {name}" for row, name in enumerate(nexts)]
    steps.append(Turn(say("turn"), say("writes"), ticks, frames, at))
    return Station("cross", say("title"), steps)


def writing(about: Sentence) -> Station | None:
    """Probabilities of the next token, at several temperatures; None of a model that predicts nothing."""
    found = about.found
    if not found.candidates:
        return None
    say = words_of("writing")
    names = labels.told_apart([one.token for one in found.candidates])
    rows = station_numbers.tempered(about.subject.trace, found.position, [one.token.id for one in found.candidates])
    frames: list[Frame] = []
    for row in rows:
        values = [float(p) for p in row]
        frames.append([Bars(words_of("machine")("out"), names, values, [share(p) for p in values], 1.0, 0)])
    one, two = TEMPERATURES.index(1.0), TEMPERATURES.index(2.0)
    best = int(np.argmax(rows[one]))
    given = fixed(say, ("less", "more", "same"), then=share(float(rows[two, best])))
    fewer = rows[two, best] < rows[one, best]  # (with very many candidates alike it could stay)
    form = "fill" if about.subject.config.architecture == "encoder-only" else "next"
    steps: list[Step] = [Show(say("see", form=form), frames[one])]
    if fewer:
        steps.append(asked(say, given, 0, frames[one], p=share(float(rows[one, best])), best=names[best]))
    ticks = [f"{temperature:g}" for temperature in TEMPERATURES]
    steps.append(Turn(say("turn"), say("temperature"), ticks, frames, one))
    return Station("writing", say("title"), steps)


def loss(about: Sentence) -> Station | None:
    """-ln p of each token that follows, and where each lies on the curve; None where nothing follows."""
    writing = about.found.writing
    if writing is None or not len(writing.probabilities):
        return None
    say = words_of("loss")
    p = [float(one) for one in writing.probabilities]
    names = [choice.next.text for choice in writing.choices][: len(p)]
    losses = [-math.log(max(one, 1e-12)) for one in p]
    bars: Frame = [Bars(say("each"), names, losses, list(map(number, losses)), max(max(losses), 0.1))]
    x = [0.01 * step for step in range(1, 101)]
    y = [-math.log(one) for one in x]
    points = [(max(a, 0.01), min(b, y[0]), f"{name}: {number(b)}") for a, b, name in zip(p, losses, names, strict=True)]
    frames: list[Frame] = [[Curve("", say("p"), say("nats"), x, y, points, index)] for index in range(len(points))]
    at = int(np.argmax(losses))
    ticks = [f"{name}: {share(one)}" for name, one in zip(names, p, strict=True)]
    steps: list[Step] = [
        Show(say("see"), bars),
        asked(say, fixed(say, ("plus", "twice", "half")), 0, bars, p=share(p[at])),
        Turn(say("turn"), words_of("rows")("token"), ticks, frames, at),
        Show(say("answer"), frames[at]),
    ]
    return Station("loss", say("title"), steps)


def _sublayer_names(found: FollowedToken, config: ModelConfig) -> list[str]:
    token, layer = found.tokens[found.followed].text, found.look.layer
    attended = _("+ output of attention, all heads")
    if config.residual == "none":
        attended = _("output of attention, all heads")
        after = [_("the row that replaces it"), _("after the feed-forward network")]
    elif config.norm_order == "post":
        after = [_("= their sum, normalised"), _("= after the feed-forward network, normalised again")]
    else:
        after = [_("= their sum"), _("= plus the output of the feed-forward network")]
    return [
        _("“{token}” before layer {layer}", token=token, layer=layer),
        attended,
        *after,
    ]


def _layer_names(found: FollowedToken) -> list[str]:
    count = len(found.layers.lengths) - 1
    return [_("at the start"), *(_("after layer {layer}", layer=layer) for layer in range(count))]


def _length(value: float) -> str:
    """A number of any size in a few digits, with a true minus sign."""
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 or size == 0 else 4
    return f"{value:.{digits}f}".replace("-", "−")


# Stations 5 to 8: query and key, softmax, values and heads, the mask.
def query(about: Sentence) -> Station | None:
    """Scores of one query with every key, and the weights that come of them."""
    say, look, texts = words_of("query"), about.look, about.texts
    at, best = look.query, int(np.argmax(look.weights[look.query]))
    chips = Chips(texts, lit=[at])
    weights = [float(weight) for weight in look.weights[at]]
    steps: list[Step] = [Show(say("see"), [chips])]
    if (chosen := best_of(texts, weights)) is not None and best in chosen:
        given = each(say, texts, chosen, best, list(map(number, weights)))
        steps.append(asked(say, given, chosen.index(best), [chips], token=about.token, **about.head))
    frames = [_row(about, row) for row in range(len(texts))]
    score = number(float(about.row.scores[at, best]))
    steps.append(Show(say("answer", score=score, best=texts[best]), frames[at]))
    steps.append(Turn(say("turn"), say("asks"), labels.numbered(about.found.tokens), frames, at))
    return Station("query", say("title"), steps)


def _row(about: Sentence, row: int) -> Frame:
    say, texts = words_of("query"), about.texts
    weights = [float(weight) for weight in about.look.weights[row]]
    scores = about.row.scores[[row]]
    best = int(np.argmax(weights))
    return [
        Grid(say("scores", token=texts[row]), [""], texts, scores, signed=True, written=True),
        _posts(say("weights", token=texts[row]), texts, weights, best),
    ]


def _posts(title: str, names: Sequence[str], weights: Sequence[float], lit: int) -> Bars:
    return Bars(title, names, weights, list(map(number, weights)), 1.0, lit, upright=True)


def softmax(about: Sentence) -> Station | None:
    """e to the power of each score, divided by the sum; the same scores times a factor."""
    say, at = words_of("softmax"), about.look.query
    scores = about.row.scores[at]
    seen = [i for i, score in enumerate(scores) if not np.isnan(score)]
    names, own = [about.texts[i] for i in seen], scores[seen]
    powers, weights = np.exp(np.minimum(own, _LARGEST)), station_numbers.scaled(own, 1.0)
    written = [[f"{power:.2f}" if power < 100 else f"{power:,.0f}" for power in powers]]
    unnamed = [""] * len(names)
    table: Frame = [
        Grid("", [say("score")], names, own[None], signed=True, written=True),
        Grid("", [say("power")], unnamed, powers[None] / powers.max(), texts=written),
        Grid("", [say("weight")], unnamed, weights[None], written=True),
        _posts("", names, [float(x) for x in weights], int(np.argmax(weights))),
    ]
    first, then = float(weights.max()), number(float(station_numbers.scaled(own, 4.0).max()))
    frames: list[Frame] = []
    for factor in FACTORS:
        row = [float(x) for x in station_numbers.scaled(own, factor)]
        frames.append([_posts(say("weight"), names, row, int(np.argmax(row)))])
    steps: list[Step] = [Show(say("see"), table)]
    if len(seen) > 1:
        given = fixed(say, ("times", "larger", "same"), then=then)
        steps.append(asked(say, given, 1, frames[FACTORS.index(1.0)], weight=number(first)))
    ticks = [f"× {factor:g}" for factor in FACTORS]
    turned = say("turn")
    if about.subject.config.attention_scale is None:
        turned += say("spread", d_head=about.row.d_head)
    steps.append(Turn(turned, say("factor"), ticks, frames, FACTORS.index(1.0)))
    return Station("softmax", say("title"), steps)


def heads(about: Sentence) -> Station | None:
    """Weight times value, their sum; all heads of the layer."""
    say, look = words_of("heads"), about.look
    order = np.argsort(-look.weights[look.query], kind="stable")[:_VALUES]
    names = [say("taken", weight=number(float(look.weights[look.query, i])), token=about.texts[i]) for i in order]
    rows = np.concatenate([about.row.weighted[order], about.row.z[None]])
    title = words_of("rows")("cells", cells=rows.shape[1], width=about.row.d_head)
    values: Frame = [Grid(title, [*names, say("sum")], [], rows, signed=True, lit=len(names))]
    maps = station_numbers.layer_maps(about.subject.trace, about.stack, look)
    drawn = [Grid(say("map"), about.texts, about.texts, np.where(look.blocked, np.nan, one)) for one in maps]
    named = [say("head", head=head) for head in range(len(maps))]
    steps: list[Step] = [Show(say("see"), values)]
    shares = station_numbers.previous_shares(maps)
    first = min(max(look.head - _MAPS + 1, 0), max(len(maps) - _MAPS, 0))
    compared = list(range(first, min(first + _MAPS, len(maps))))
    best = max(compared, key=lambda head: shares[head])
    if len(compared) > 1 and len(about.texts) > 2:
        small: Frame = [replace(drawn[head], title=named[head], small=True) for head in compared]
        given = each(say, named, compared, best, list(map(share, map(float, shares))))
        steps.append(asked(say, given, compared.index(best), small, layer=look.layer))
    frames: list[Frame] = [[one] for one in drawn]
    ticks = [say("site", layer=look.layer, head=head) for head in range(len(maps))]
    steps.append(Turn(say("turn"), say("which"), ticks, frames, look.head))
    return Station("heads", say("title"), steps)


def mask(about: Sentence) -> Station | None:
    """What a row of the decoder may see; the same without the mask. None where there is no decoder."""
    written = about.written
    if len(written) < 2:
        return None
    say, texts = words_of("mask"), labels.texts(written)
    found = station_numbers.unmasked(about.subject.trace, len(written))
    at = len(texts) // 2
    chips = Chips(texts, lit=[at])
    title = say("site", layer=found.layer, head=found.head)
    on: Frame = [Grid(title, texts, texts, found.masked)]
    off: Frame = [Grid(title, texts, texts, found.open)]
    steps: list[Step] = [
        Show(say("see"), [chips]),
        asked(say, fixed(say, ("all", "upto", "before")), 1, [chips], token=texts[at]),
        Show(say("answer"), on),
        Turn(say("turn", ahead=share(found.ahead)), say("switch"), [say("on"), say("off")], [on, off]),
    ]
    return Station("mask", say("title"), steps)
