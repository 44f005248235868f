"""Stations 9 to 12: the rest of a layer, the decoder's look at the source, writing, the loss."""

import math

import numpy as np

from vizformer.analysis.attribution import station_numbers
from vizformer.analysis.attribution.forward_scenes import Walkthrough
from vizformer.analysis.attribution.station_numbers import TEMPERATURES
from vizformer.components.stations import Bars, Chips, Curve, Frame, Grid, Show, Station, Step, Turn
from vizformer.config import ModelConfig
from vizformer.web.widgets.source_language import words_with_meaning
from vizformer.web.widgets.whole_model.sentence import Sentence, asked, best_of, each, fixed, number, share, words_of
from vizformer.web.words import labels
from vizformer.web.words.i18n import _


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


def _sublayer_names(found: Walkthrough, config: ModelConfig) -> list[str]:
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


def _layer_names(found: Walkthrough) -> list[str]:
    count = len(found.layers.lengths) - 1
    return [_("at the start"), *(_("after layer {layer}", layer=layer) for layer in range(count))]


def _length(value: float) -> str:
    """A number of any size in a few digits, with a true minus sign."""
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 or size == 0 else 4
    return f"{value:.{digits}f}".replace("-", "−")
