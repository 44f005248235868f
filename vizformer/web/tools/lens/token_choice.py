"""What is asked: the token whose logit is looked at, at one position, and what is taken off it."""

from dataclasses import dataclass

from streamlit.delta_generator import DeltaGenerator

from vizformer.analysis.attribution.terms import Against
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.lens import computations
from vizformer.web.widgets import position_choice
from vizformer.web.widgets.choices import box, one_of
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

OWN = -1  # the token that the model itself finds most probable


@dataclass(frozen=True)
class Asked:
    """A position of the stack that predicts, and the token whose logit is taken apart, less that of `against`."""

    position: int
    token: int
    text: str
    against: Against


def choose(subject: Subject, settings: DeltaGenerator) -> Asked:
    """Draws the positions here, and the other choices in the line of settings."""
    position = position_choice.choose(subject, key="lens.position")
    best = subject_cache.predictions(subject, position)
    right = computations.right(subject)[position]
    listed = [one.token.id for one in best]
    texts = dict(zip([*listed, right], computations.texts(subject, (*listed, right)), strict=True))
    ids = [OWN, *listed]
    own = labels.percent(best[0].probability)
    names = {OWN: _("the model's own: “{token}”, {p}", token=texts[listed[0]], p=own)}
    names |= {one.token.id: f"“{texts[one.token.id]}”, {labels.percent(one.probability)}" for one in best}
    if right not in names:
        ids.insert(1, right)
        names[right] = _("the text's: “{token}”", token=texts[right])
    others = {"mean": _("the mean of all tokens"), "next": _("the next best token"), "none": _("nothing")}
    with settings:
        called = {id: names[id] for id in ids}
        chosen = box(_("The answer to explain"), "lens.token", called, width=320)
        less = one_of(_("Compare the logit with"), "lens.against", others)
    token = best[0].token.id if chosen == OWN else chosen
    against: Against = "mean" if less == "mean" else None
    if less == "next":
        against = next(one.token.id for one in best if one.token.id != token)
    return Asked(position, token, texts[token], against)


def less(subject: Subject, against: Against) -> str:
    """What was taken off the logit, in words."""
    if against == "mean":
        return _("the mean logit of all tokens")
    (text,) = computations.texts(subject, (int(against or 0),))
    return _("that of “{token}”", token=text)
