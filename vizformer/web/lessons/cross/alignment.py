"""The laboratory Alignment: which source token each word was chosen from, and how often that is the right one."""

import numpy as np
import streamlit as st

from vizformer.analysis import telling_row, word_order
from vizformer.components import table
from vizformer.components.heatmap import Heatmap
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.cross import computations, links, other_model
from vizformer.web.link import state
from vizformer.web.widgets import lesson, map_downloads, row_names
from vizformer.web.widgets.cell_question import LARGEST
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _

MEAN = -1  # in place of a head: the mean of the heads
_PAIR, _SHOWN = "cross.pair", "cross.pair.shown"


@laboratory
def alignment(subject: Subject) -> None:
    """Where each row looks most."""
    if not other_model.meets(subject, "alignment"):
        return
    st.html(table.style())
    config = subject.config
    lesson.ask(cell_question(subject))
    _choose_pair(subject)
    last = config.n_decoder_layers - 1
    layer = st.selectbox(
        _("Layer"),
        range(config.n_decoder_layers),
        **lesson.setting("cross.layer", last, range(config.n_decoder_layers)),
    )
    heads = {MEAN: _("mean of the heads"), **{h: str(h) for h in range(config.n_heads)}}
    head = st.selectbox(
        _("Head"),
        list(heads),
        format_func=heads.__getitem__,
        **lesson.setting("cross.head", MEAN, heads),
    )
    found = computations.alignment(subject)
    chosen = found.mean[layer] if head == MEAN else found.by_head[layer, head]
    by_hand = computations.links(subject)
    map_downloads.show(
        Heatmap(
            found.weights[layer] if head == MEAN else _pattern(subject, layer, head),
            row_names.queries(subject, "cross"),
            labels.texts(subject.trace.tokens["encoder"]),
            rings=chosen.tolist(),
            squares=[(link.row, column) for link in by_hand for column in link.columns],
            title=_("Layer {layer}, mean of the heads", layer=layer)
            if head == MEAN
            else _("Layer {layer}, head {head}", layer=layer, head=head),
        ),
        key="cross.alignment",
    )
    for token, choice in list(zip(subject.trace.tokens["decoder"], row_names.choices(subject), strict=False))[1:2]:
        st.caption(
            _(
                "A row stands on the token that is already written and chooses the next one: the row of “{token}” looks "
                "where “{chosen}” comes from. What “{token}” was translated from is told one row higher.",
                token=plain(token.text),
                chosen=plain(choice.next.text),
            )
        )
    _order(subject, chosen)
    if by_hand:
        hits = sum(int(chosen[link.row]) in link.columns for link in by_hand)
        st.text(
            _(
                "Aligned by hand (squares): {hits} of {all} content words of this pair are looked up where they stand.",
                hits=hits,
                all=len(by_hand),
            )
        )
    _score(subject, layer, head)
    _formula(subject, layer, head, chosen)
    links.to(sitemap.ATTENTION)


def _pattern(subject: Subject, layer: int, head: int) -> np.ndarray:
    pattern: np.ndarray = subject.trace[f"decoder.{layer}.cross"].pattern(head).float().cpu().numpy()
    return pattern


def _order(subject: Subject, chosen: np.ndarray) -> None:
    """Which words change places on the way."""
    choices = row_names.choices(subject)
    rows = [i for i, choice in enumerate(choices) if not choice.next.special]
    order = word_order(chosen.tolist(), rows)
    if not order.pairs:
        return
    said = _("{crossed} of {pairs} pairs of words change places.", crossed=len(order.crossed), pairs=order.pairs)
    if order.crossed:
        first, second = max(order.crossed, key=lambda pair: int(chosen[pair[0]] - chosen[pair[1]]))
        source = labels.texts(subject.trace.tokens["encoder"])
        said += " " + _(
            "“{first}” is written before “{second}”, but “{from_first}” stands after “{from_second}”.",
            first=choices[first].next.text,
            second=choices[second].next.text,
            from_first=source[chosen[first]],
            from_second=source[chosen[second]],
        )
    st.text(said)


def _choose_pair(subject: Subject) -> None:
    """The pairs of the model's card, to be put in place of the typed sentence."""
    pairs = computations.pairs(subject.model)
    if not pairs:
        st.caption(
            _("No sentences were aligned by hand for this model: the map can be looked at, but there is no score.")
        )
        return
    own = next((i for i, pair in enumerate(pairs) if pair.source == subject.text.strip()), None)
    if st.session_state.get(_SHOWN) != subject.text:  # another sentence came since
        st.session_state[_SHOWN], st.session_state[_PAIR] = subject.text, own
    number = st.selectbox(
        _("A pair that was aligned by hand"),
        range(len(pairs)),
        index=None,
        format_func=[f"{pair.source} · {pair.target}" for pair in pairs].__getitem__,
        placeholder=_("your own sentence"),
        key=_PAIR,
        persist_state="session",
    )
    if number is not None and number != own:
        state.update(text=pairs[number].source, target=pairs[number].target, edits="")
        st.session_state[_SHOWN] = pairs[number].source
        st.rerun()  # the whole page


def _score(subject: Subject, layer: int, head: int) -> None:
    """Over all pairs that were aligned by hand: each head's share of right look-ups."""
    pairs = computations.pairs(subject.model)
    if not pairs:
        return
    score = computations.alignment_score(subject.model)
    shares = np.concatenate([score.by_head, score.found[:, None]], axis=1)
    columns = (_("layer"), *(_("head {head}", head=h) for h in range(score.by_head.shape[1])), _("mean of the heads"))
    rows = [
        Row(
            (str(at), *(Number(float(share), f"{share:.0%}") for share in of_layer)),
            "marked" if at == layer else "",
        )
        for at, of_layer in enumerate(shares)
    ]
    caption = _(
        "{pairs} held-out pairs, {words} content words: how often the source token that is looked at most is the right one",
        pairs=len(pairs),
        words=score.words,
    )
    st.html(table.to_html(columns, rows, bar=len(columns) - 1, caption=caption))
    share = shares[layer, head]
    st.text(
        _(
            "Layer {layer}, {head}: {right} of {words} words.",
            layer=layer,
            head=_("mean of the heads") if head == MEAN else _("head {head}", head=head),
            right=round(float(share) * score.words),
            words=score.words,
        )
    )


def _formula(subject: Subject, layer: int, head: int, chosen: np.ndarray) -> None:
    trace = subject.trace
    record = trace[f"decoder.{layer}.cross"]
    weights = computations.alignment(subject).weights[layer] if head == MEAN else _pattern(subject, layer, head)
    row = min(1, len(chosen) - 1)
    column = int(chosen[row])
    real = [not token.special for token in trace.tokens["encoder"]]
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


def cell_question(subject: Subject) -> lesson.CellChoice | None:
    """Which cell holds the weight of a choice?  The row is that of the token before the chosen one."""
    source, target = subject.trace.tokens["encoder"], subject.trace.tokens["decoder"]
    layer = subject.config.n_decoder_layers - 1
    found = computations.alignment(subject)
    choices = row_names.choices(subject)
    rows = [i for i, choice in enumerate(choices) if i + 1 < len(target) and not choice.next.special]
    row = telling_row(found.weights[layer], rows[1:] or rows)  # (the first one stands on the start mark)
    if row is None or max(len(source), len(target)) > LARGEST:
        return None
    column = int(found.mean[layer, row])
    names, columns = labels.texts(target), labels.texts(source)
    weights = found.weights[layer].astype(np.float64)
    return lesson.CellChoice(
        "cross",
        "cell",
        _(
            "When the decoder chooses “{chosen}”, layer {layer} looks most at “{source}” (mean of the heads). Which cell is "
            "that? Rows are called by the token that goes in.",
            chosen=names[row + 1],
            layer=layer,
            source=columns[column],
        ),
        lesson.Grid(names, columns, weights),
        (row, column),
        _(
            "The row of “{token}”, where the decoder stands when it has written “{token}” and chooses what follows. The row "
            "of “{chosen}” is already asked for the token after it.",
            token=names[row],
            chosen=names[row + 1],
        ),
        about=f"{subject.model} {subject.text} {subject.target} {subject.edited}",
    )
