"""The measures of the head report in words, and what a head does in a sentence."""

import numpy as np

from vizformer.analysis.corpus_heads import KindReport
from vizformer.figures.head_report import Measure
from vizformer.messages import N_, Message, messages_of
from vizformer.web.words.i18n import _, translate
from vizformer.word_tables import words_of

_WORDS = {name: messages_of(texts) for name, texts in words_of(__file__).items()}
TITLES = _WORDS["titles"]  # in the order in which they are offered
MEANINGS, DOES = _WORDS["meanings"], _WORDS["does"]
BY_HAND = "induction-by-hand"
WHY: tuple[Message, ...] = tuple(_WORDS["why"].values())
SIGNS: dict[int, Message] = {1: N_("copying"), -1: N_("anti-copying")}
"""What a head does with what it looks at, by the sign of its OV where that is clear."""
SIGN_SENTENCES: dict[int, Message] = {
    1: N_("By its weights alone it copies: its OV raises the logit of the token to which it attends."),
    -1: N_("By its weights alone it anti-copies: its OV lowers the logit of the token to which it attends."),
}
HABIT = 0.5  # of the rows: below it a head has no habit
_MANY = 0.02  # of the most rows that any target has: fewer say little

SHARES = frozenset((*DOES, "induction_repeated", "positional", "content", "beside_sinks"))
"""The measures that are shares of 1."""
UNITS = _WORDS["units"]
SIGNED = ("copying", "logit_effect")
LAYER = "layer"


def title(measure: str) -> str:
    return translate(TITLES[measure])


def meaning(measure: str) -> str:
    return translate(MEANINGS[measure])


def axis(found: KindReport, name: str) -> Measure:
    """A measure, or the layer, as an axis or a colour of the scatter."""
    if name == LAYER:
        return Measure(_("Layer"), np.indices(found.shape)[0])
    unit = f" ({translate(UNITS[name])})" if name in UNITS else ""
    return Measure(title(name) + unit, found.mean[name], share=name in SHARES, signed=name in SIGNED)


def number(measure: str, value: float) -> str:
    if value != value:
        return "–"
    return f"{value:.1%}" if measure in SHARES else f"{value:.2f}"


def sentence(report: KindReport, layer: int, head: int, texts: int) -> str:
    """A sentence about a head: the target that gets most attention in most of its rows, or that there is none."""
    place = (layer, head)
    enough = _MANY * max(int(rows[place]) for rows in report.rows.values())
    known = [name for name in DOES if report.rows[name][place] > enough]
    best = max(known, key=lambda name: float(report.most[name][place]), default=None)
    if best is None or report.most[best][place] < HABIT:
        return _(
            "Layer {layer}, head {head} shows no dominant pattern over all {n:,} texts; the mean entropy of its rows is "
            "{entropy} nats.",
            layer=layer,
            head=head,
            n=texts,
            entropy=f"{float(report.mean['entropy'][place]):.2f}",
        )
    share = f"{float(report.most[best][place]):.0%}"
    values = {"layer": layer, "head": head, "share": share, "rows": int(report.rows[best][place]), "n": texts}
    return translate(Message(DOES[best].text, values))
