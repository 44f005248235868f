"""The row at which answers are compared, the token that is followed, and what stands in the place of a part."""

from dataclasses import dataclass

from vizformer.analysis import Prediction
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.what_if import other_texts
from vizformer.web.tools.what_if.computations import Instead, Mean
from vizformer.web.widgets import position_choice
from vizformer.web.widgets.answer_question import ask_why
from vizformer.web.widgets.choices import one_of
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_note, show_text


@dataclass(frozen=True)
class Place:
    row: int  # of the output
    best: tuple[Prediction, ...]  # the model's own answers there, most probable first
    instead: Instead  # what takes the place of a part

    @property
    def token(self) -> int:
        """The token that is followed: the model's own answer."""
        return self.best[0].token.id


def choose(subject: Subject, instead: Instead = "zero") -> Place:
    """The strip of the rows, and the model's own answer at the chosen one."""
    row = position_choice.choose(subject, key="what_if.row", compared=True)
    best = subject_cache.predictions(subject, row)
    show_text(
        "The model's own answer there: “{token}”, {percent}.",
        token=best[0].token.text,
        percent=labels.percent(best[0].probability),
    )
    ask_why(best[0].token.text, row, key="what_if.why")
    return Place(row, best, instead)


def choose_instead(subject: Subject) -> Instead:
    names = {"zero": _("nothing (zero)"), "mean": _("its mean over other texts")}
    how = one_of(_("Replace the removed part with"), "whatif.instead", names)
    if how != "mean":
        return "zero"
    show_note(
        "Mean ablation: at every position the output of a head or a sublayer is replaced by its mean over "
        "all positions of other texts."
    )
    return Mean(other_texts.choose(subject))
