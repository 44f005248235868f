"""The measures of the head report in words, and what a head does in a sentence."""

import numpy as np

from vizformer.analysis.corpus_heads import KindReport
from vizformer.figures.head_report import Measure
from vizformer.messages import N_, Message
from vizformer.web.words.i18n import _, translate

TITLES: dict[str, Message] = {
    "previous": N_("Token before"),
    "diagonal": N_("Itself"),
    "next": N_("Token after"),
    "first": N_("First token"),
    "delimiter": N_("Delimiters"),
    "same_token": N_("Same token"),
    "duplicate_token": N_("Duplicate token"),
    "induction": N_("Induction, in these texts"),
    "induction_repeated": N_("Induction, on random tokens"),
    "positional": N_("Positions"),
    "content": N_("Content"),
    "redundancy": N_("Redundancy"),
    "beside_sinks": N_("Outside the sinks"),
    "copying": N_("Copying score"),
    "logit_effect": N_("Effect on the logit"),
    "entropy": N_("Entropy"),
    "distance": N_("Distance"),
    "effective_rank": N_("Effective rank"),
}
"""In the order in which they are offered."""

MEANINGS: dict[str, Message] = {
    "previous": N_("Attention to the token before the query, as a mean over the rows that see it and another one."),
    "diagonal": N_("Attention of a token to itself."),
    "next": N_("Attention to the token after the query; only heads that see the future can have any."),
    "first": N_("Attention to the first token: heads rest there that have nothing to do."),
    "delimiter": N_("Attention to separators, end marks and punctuation, but for the first token."),
    "same_token": N_("Attention to all tokens that are the query's own, itself included."),
    "duplicate_token": N_("Attention to earlier occurrences of the query's token."),
    "induction": N_("Attention to what followed an earlier occurrence of the query's token, in the texts themselves."),
    "induction_repeated": N_(
        "The same on random tokens that come twice, where nothing but the repetition tells what comes next."
    ),
    "positional": N_("How much of where the head looks is the same in every text, at the same positions (0 to 1)."),
    "content": N_("The rest: how much changes with the words. 1 less the share of positions."),
    "redundancy": N_(
        "How much the head's maps are like those of the head that is most like it: a cosine, 1 is the same. The first token "
        "and the tokenizer's marks, where heads rest, are left out; heads whose OV has opposite signs do not count as alike."
    ),
    "beside_sinks": N_(
        "In which share of the rows a tenth or more of the attention lies on other keys than the first token and the "
        "tokenizer's marks."
    ),
    "copying": N_(
        "1: whatever token the head looks at, its logit rises (copying); −1: it falls (anti-copying); near 0: neither. From "
        "the weights, see the circuits below."
    ),
    "logit_effect": N_(
        "How much the head itself raises the logit of the token that comes next in the text, in nats above the mean of all "
        "tokens: a mean over up to 24 places in the first texts. What later layers make of it does not count."
    ),
    "entropy": N_("How evenly a row is spread, in nats: 0 where it reads one token, ln n where n alike."),
    "distance": N_("From how far away a row reads on average, in tokens."),
    "effective_rank": N_("How many different rows the maps have: 1 where all queries look alike."),
}

DOES: dict[str, Message] = {
    "previous": N_(
        "Layer {layer}, head {head} attends most to the token before it in {share} of the {rows:,} rows that see one, over "
        "all {n:,} texts."
    ),
    "diagonal": N_(
        "Layer {layer}, head {head} attends most to the token itself in {share} of {rows:,} rows, over all {n:,} texts."
    ),
    "next": N_(
        "Layer {layer}, head {head} attends most to the token after it in {share} of the {rows:,} rows that see one, over "
        "all {n:,} texts."
    ),
    "first": N_(
        "Layer {layer}, head {head} attends most to the first token in {share} of {rows:,} rows, over all {n:,} texts."
    ),
    "delimiter": N_(
        "Layer {layer}, head {head} attends most to delimiters in {share} of the {rows:,} rows that see one, over all "
        "{n:,} texts."
    ),
    "same_token": N_(
        "Layer {layer}, head {head} attends most to tokens equal to its own in {share} of {rows:,} rows, over all {n:,} "
        "texts."
    ),
    "duplicate_token": N_(
        "Layer {layer}, head {head} attends most to earlier occurrences of its token in {share} of the {rows:,} rows that "
        "have one, over all {n:,} texts."
    ),
    "induction": N_(
        "Layer {layer}, head {head} attends most to what followed its token before in {share} of the {rows:,} rows that "
        "have such a place, over all {n:,} texts."
    ),
}
BY_HAND = "induction-by-hand"
WHY: tuple[Message, ...] = (
    N_(
        "Its weights were not trained but set by hand: every position and every letter has numbers of its own in the "
        "residual stream. Two heads work; the six others are random and mean nothing."
    ),
    N_(
        "Layer 0, head 1, the previous-token head: W_Q says where a letter stands, W_K says that of the place after it, so "
        "that each query finds the key before it. W_V and W_O copy the letter found there to “the token before”."
    ),
    N_(
        "Layer 1, head 2, the induction head: W_Q says which letter it is, W_K says which letter stood before, so that the "
        "query finds the place after its last occurrence. W_V and W_O copy the letter there to “what is said”, which the "
        "unembedding reads."
    ),
    N_(
        "Where a letter is new, the start mark has the best key, half as good as a match, and nothing is said. All scores "
        "are multiplied by 32, so that the softmax is as good as a choice. Type letters that repeat themselves on the page "
        "Attention and look at both."
    ),
)
SIGNS: dict[int, Message] = {1: N_("copying"), -1: N_("anti-copying")}
"""What a head does with what it looks at, by the sign of its OV where that is clear."""
SIGN_SENTENCES: dict[int, Message] = {
    1: N_("By its weights alone it copies: its OV raises the logit of the token that it looks at."),
    -1: N_("By its weights alone it anti-copies: its OV lowers the logit of the token that it looks at."),
}
HABIT = 0.5  # of the rows: below it a head has no habit
_MANY = 0.02  # of the most rows that any target has: fewer say little

SHARES = frozenset((*DOES, "induction_repeated", "positional", "content", "beside_sinks"))
"""The measures that are shares of 1."""
UNITS = {"entropy": N_("nats"), "distance": N_("tokens"), "logit_effect": N_("nats")}
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
    """What a head does: the target that most of its rows have, or that there is none."""
    place = (layer, head)
    enough = _MANY * max(int(rows[place]) for rows in report.rows.values())
    known = [name for name in DOES if report.rows[name][place] > enough]
    best = max(known, key=lambda name: float(report.most[name][place]), default=None)
    if best is None or report.most[best][place] < HABIT:
        return _(
            "Layer {layer}, head {head} has no habit of these kinds over all {n:,} texts; the mean entropy of its rows is "
            "{entropy} nats.",
            layer=layer,
            head=head,
            n=texts,
            entropy=f"{float(report.mean['entropy'][place]):.2f}",
        )
    share = f"{float(report.most[best][place]):.0%}"
    values = {"layer": layer, "head": head, "share": share, "rows": int(report.rows[best][place]), "n": texts}
    return translate(Message(DOES[best].text, values))
