"""The laboratory Alignment: which source token each word was chosen from, and how often that is the right one."""

import numpy as np
import streamlit as st

from vizformer import analysis
from vizformer.analysis import AlignedPair, AlignmentScore, Link, telling_row, word_order
from vizformer.assets import asset
from vizformer.components import table
from vizformer.components.heatmap import Heatmap
from vizformer.components.table import Number, Row
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_trace
from vizformer.web.frame import sitemap
from vizformer.web.lessons.cross.surroundings import has_two_stacks, meets, see_also
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import head_downloads, lesson, map_words
from vizformer.web.widgets.cell_question import LARGEST
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels

lab = Laboratory("cross", "alignment")
MEAN = -1  # in place of a head: the mean of the heads
_PAIR, _SHOWN = "cross.pair", "cross.pair.shown"


align = of_trace(analysis.alignment)


@cached
def pairs(model: ModelRef) -> tuple[AlignedPair, ...]:
    """The pairs of the model's card that were aligned by hand; none where its folder has none."""
    path = asset("models", model.name, "alignment.tsv")
    return tuple(analysis.read_alignments(path)) if model.source == "bundled" and path.is_file() else ()


@cached
def alignment_score(model: ModelRef) -> AlignmentScore:
    """Over all these pairs: a second's work, once for every model."""
    return analysis.alignment_score(model_cache.checkpoint(model), pairs(model))


def links(subject: Subject) -> tuple[Link, ...]:
    """The links by hand, where the sentence and its translation are one of those pairs."""
    for pair in pairs(subject.model):
        if (pair.source, pair.target) == (subject.text.strip(), subject.translation):
            target = subject.checkpoint.encode_target(pair.target)
            if [token.id for token in target] == [token.id for token in subject.trace.tokens["decoder"]]:
                return analysis.linked(pair, subject.tokens, target)
    return ()


@lab.draws
def draw_alignment(subject: Subject) -> None:
    if not meets(lab, subject):
        return
    st.html(table.style())
    layers, heads = subject.config.n_decoder_layers, range(subject.config.n_heads)
    with controls():
        _choose_pair(subject)
        layer = lab.box("layer", [str(one) for one in range(layers)], layers - 1, width=80)
        head = lab.box("head", {MEAN: lab.text("mean"), **{one: str(one) for one in heads}}, MEAN)
        lesson.ask(alignment_question(subject), folded=True)
    found, by_hand = align(subject), links(subject)
    chosen = found.mean[layer] if head == MEAN else found.by_head[layer, head]
    weights = _weights(subject, layer, head)
    head_downloads.show(
        Heatmap(
            weights,
            map_words.queries(subject, "cross"),
            labels.texts(subject.trace.tokens["encoder"]),
            rings=chosen.tolist(),
            squares=[(link.row, column) for link in by_hand for column in link.columns],
            title=lab.text("of_layer", layer=layer, head=_head(head)),
        ),
        key="cross.alignment",
    )
    for token, choice in list(zip(subject.trace.tokens["decoder"], map_words.choices(subject), strict=False))[1:2]:
        lab.note("row", token=token.text, chosen=choice.next.text)
    _order(subject, chosen)
    if by_hand:
        hits = sum(int(chosen[link.row]) in link.columns for link in by_hand)
        lab.say("by_hand", hits=hits, all=len(by_hand))
    _score(subject, layer, head)
    _formula(subject, layer, head, weights, chosen)
    see_also(lab, sitemap.ATTENTION)


@lab.asks("cell")
def alignment_question(subject: Subject) -> lesson.CellChoice | None:
    """Which cell holds the weight of a choice?  The row is that of the token before the chosen one."""
    if not has_two_stacks(subject.model):
        return None
    source, target = subject.trace.tokens["encoder"], subject.trace.tokens["decoder"]
    layer, found = subject.config.n_decoder_layers - 1, align(subject)
    choices = map_words.choices(subject)
    rows = [i for i, choice in enumerate(choices) if i + 1 < len(target) and not choice.next.special]
    row = telling_row(found.weights[layer], rows[1:] or rows)  # (the first one stands on the start mark)
    if row is None or max(len(source), len(target)) > LARGEST:
        return None
    column, names, columns = int(found.mean[layer, row]), labels.texts(target), labels.texts(source)
    said = lab.asked("cell", subject, token=names[row], chosen=names[row + 1], layer=layer, source=columns[column])
    grid = lesson.Grid(names, columns, found.weights[layer].astype(np.float64))
    return lesson.CellChoice(grid=grid, answer=(row, column), **said)


def _head(head: int) -> str:
    return lab.text("mean") if head == MEAN else lab.text("of_head", head=head)


def _weights(subject: Subject, layer: int, head: int) -> np.ndarray:
    pattern = subject.trace[f"decoder.{layer}.cross"].pattern
    weights: np.ndarray = align(subject).weights[layer] if head == MEAN else pattern(head).float().cpu().numpy()
    return weights


def _order(subject: Subject, chosen: np.ndarray) -> None:
    """Which words change places on the way."""
    choices = map_words.choices(subject)
    rows = [i for i, choice in enumerate(choices) if not choice.next.special]
    order = word_order(chosen.tolist(), rows)
    if not order.pairs:
        return
    said = lab.text("crossed", crossed=len(order.crossed), pairs=order.pairs)
    if order.crossed:
        first, second = max(order.crossed, key=lambda pair: int(chosen[pair[0]] - chosen[pair[1]]))
        source = labels.texts(subject.trace.tokens["encoder"])
        said += " " + lab.text(
            "example",
            first=choices[first].next.text,
            second=choices[second].next.text,
            from_first=source[chosen[first]],
            from_second=source[chosen[second]],
        )
    st.text(said)


def _choose_pair(subject: Subject) -> None:
    """The pairs of the model's card, to be put in place of the typed sentence."""
    known = pairs(subject.model)
    if not known:
        return
    own = next((i for i, pair in enumerate(known) if pair.source == subject.text.strip()), None)
    if st.session_state.get(_SHOWN) != subject.text:  # another sentence came since
        st.session_state[_SHOWN], st.session_state[_PAIR] = subject.text, own
    number = st.selectbox(
        lab.text("pair"),
        range(len(known)),
        index=None,
        format_func=[f"{pair.source} · {pair.target}" for pair in known].__getitem__,
        placeholder=lab.text("yours"),
        key=_PAIR,
        persist_state="session",
    )
    if number is not None and number != own:
        state.update(text=known[number].source, target=known[number].target, edits="")
        st.session_state[_SHOWN] = known[number].source
        st.rerun()  # the whole page


def _score(subject: Subject, layer: int, head: int) -> None:
    """Over all pairs that were aligned by hand: each head's share of right look-ups."""
    if not (known := pairs(subject.model)):
        lab.note("unaligned")
        return
    score = alignment_score(subject.model)
    shares = np.concatenate([score.by_head, score.found[:, None]], axis=1)
    columns = (lab.text("rows"), *(_head(one) for one in (*range(score.by_head.shape[1]), MEAN)))
    rows = [
        Row(
            str(at), *(Number(float(share), f"{share:.0%}") for share in of_layer), kind="marked" if at == layer else ""
        )
        for at, of_layer in enumerate(shares)
    ]
    caption = lab.text("score", pairs=len(known), words=score.words)
    st.html(table.to_html(columns, rows, bar=len(columns) - 1, caption=caption))
    right = round(float(shares[layer, head]) * score.words)
    lab.say("right", layer=layer, head=_head(head), right=right, words=score.words)


def _formula(subject: Subject, layer: int, head: int, weights: np.ndarray, chosen: np.ndarray) -> None:
    record, row = subject.trace[f"decoder.{layer}.cross"], min(1, len(chosen) - 1)
    column, real = int(chosen[row]), [not token.special for token in subject.trace.tokens["encoder"]]
    symbol = r"\frac{1}{H} \sum_h a_{h,i,k}" if head == MEAN else r"a_{h,i,k}"
    lesson.formula(
        rf"k(i) = \arg\max_{{k \text{{ real}}}} \; {symbol}",
        live=rf"k({row}) = {column}, \qquad a_{{{row},{column}}} = {weights[row, column]:.4f}",
        code=f"q, k = torch.randn({record.n_heads}, {record.q.shape[1]}, {record.q.shape[2]}), "
        f"torch.randn({record.n_heads}, {record.k.shape[1]}, {record.k.shape[2]})\n"
        f"weights = (q @ k.mT * {record.scale!r}).softmax(-1).mean(0)  # [rows, source], the heads averaged\n"
        f"real = torch.tensor({real})  # marks of the source are left out\n"
        "found = weights.masked_fill(~real, -1).argmax(-1)",
    )
