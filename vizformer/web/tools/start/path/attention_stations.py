"""Stations 5 to 8: query and key, softmax, values and heads, the mask."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vizformer.analysis.attribution import station_numbers
from vizformer.analysis.attribution.station_numbers import FACTORS
from vizformer.components.stations import Bars, Chips, Frame, Grid, Show, Station, Step, Turn
from vizformer.web.widgets.whole_model.sentence import Sentence, asked, best_of, each, fixed, number, share, words_of
from vizformer.web.words import labels

_MAPS = 4  # heads whose maps are compared
_LARGEST = 80  # score whose power is written out
_VALUES = 5  # value rows that are shown, those of the largest weights


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
