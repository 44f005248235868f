"""What is asked: the token whose logit is looked at, what is taken off it; and what the page computes for it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import streamlit as st
from jaxtyping import Float
from numpy import ndarray
from streamlit.delta_generator import DeltaGenerator

from vizformer.analysis import Removed, answer_evidence, input_attribution, logit_attribution, logit_lens, taken_out
from vizformer.analysis.attribution.direct import by_key, what_is_frozen
from vizformer.analysis.attribution.lens import right_tokens, what_is_inexact
from vizformer.analysis.attribution.terms import Against
from vizformer.analysis.head_outputs import key_contributions
from vizformer.messages import Message
from vizformer.recorder.recorded_trace import KeyShares
from vizformer.recorder.tail import LogitShares
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.widgets import position_choice
from vizformer.web.widgets.choices import box, one_of
from vizformer.web.widgets.in_python import opening
from vizformer.web.widgets.laboratories import folded
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

if TYPE_CHECKING:
    from vizformer.checkpoints.recorded.checkpoint import RecordedCheckpoint


right_ids = of_run(right_tokens)
lens = of_run(logit_lens)
attribution = of_run(logit_attribution)
inputs = of_run(input_attribution)
evidence_of = of_run(answer_evidence)


@cached
def taken_out_of(subject: Subject, position: int, token: int, against: Against) -> tuple[Removed, ...]:
    """The answer without each edge of its evidence."""
    found = evidence_of(subject, position, token, against=against)
    return taken_out(subject.checkpoint, subject.trace, found, heard=HEARD.get())


@cached
def token_texts(subject: Subject, ids: tuple[int, ...]) -> tuple[str, ...]:
    """Tokens by their ids, as the stack that predicts says them; told apart where several read the same."""
    return tuple(labels.told_apart(subject.checkpoint.tokenizer.tokens(list(ids))))


@cached
def layer_shares(subject: Subject, position: int, token: int, against: Against) -> LogitShares:
    """The share of every block of a recorded model in a logit."""
    run = cast("RecordedCheckpoint", subject.checkpoint).again(subject.trace)
    return run.logit_shares(position, token, against)


@cached
def head_shares(subject: Subject, position: int, token: int, against: Against) -> dict[str, tuple[float, ...] | None]:
    """The share of every head of a recorded model in a logit, by module name; None where heads have no share."""
    run = cast("RecordedCheckpoint", subject.checkpoint).again(subject.trace)
    return run.head_shares(position, token, against)


@cached
def recorded_keys(subject: Subject, position: int, token: int, against: Against, site: str, head: int) -> KeyShares:
    """The share of each key in the logit through one head of a recorded model, given by its module's name."""
    run = cast("RecordedCheckpoint", subject.checkpoint).again(subject.trace)
    return run.key_shares(site, head, position, token, against)


@cached
def places(subject: Subject) -> dict[str, str]:
    """Maps the names of a recorded model's attention modules to the names of the sites on the pages."""
    found = cast("RecordedCheckpoint", subject.checkpoint).again(subject.trace)
    return dict(zip((one.site for one in found.attention), subject.trace.sites, strict=True))


@cached
def inexact(subject: Subject) -> tuple[Message, ...]:
    return tuple(what_is_inexact(subject.checkpoint))


@cached
def frozen(subject: Subject) -> tuple[Message, ...]:
    """Names what the terms freeze at its value."""
    return tuple(what_is_frozen(subject.checkpoint))


@cached
def keys(
    subject: Subject, position: int, token: int, against: Against, site: str, head: int
) -> tuple[Float[ndarray, " n_k"], Float[ndarray, " n_k"], Float[ndarray, " n_k"]]:
    """The share of the logit, the weight and the length of the contribution of every key, for one head."""
    found = attribution(subject, position, token, against=against)
    arriving = key_contributions(subject.checkpoint, subject.trace, site, head, position)
    return by_key(subject.checkpoint, subject.trace, found, site, head), arriving.weights, arriving.norms


@cached
def neurons(subject: Subject, position: int, token: int, against: Against, layer: int) -> Float[ndarray, " d_ff"]:
    from vizformer.analysis.attribution.direct import neurons

    found = attribution(subject, position, token, against=against)
    return neurons(subject.checkpoint, subject.trace, found, layer)


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
    right = right_ids(subject)[position]
    listed = [one.token.id for one in best]
    texts = dict(zip([*listed, right], token_texts(subject, (*listed, right)), strict=True))
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
    (text,) = token_texts(subject, (int(against or 0),))
    return _("that of “{token}”", token=text)


# The Python code that computes what the page shows; it runs on its own.
def draw_in_python(subject: Subject, asked: Asked) -> None:
    with folded(_("The same in Python"), key="lens.python") as is_open:
        if is_open:
            st.code(code(subject, asked), language="python", wrap_lines=True)


def code(subject: Subject, asked: Asked) -> str:
    """Evidence, lens, terms and input of this answer."""
    against = repr(asked.against)
    lines = [
        *opening(subject),
        f"why = vf.analysis.answer_evidence(checkpoint, trace, {asked.position}, {asked.token}, against={against})",
        "print(why.to_frame(vf.analysis.taken_out(checkpoint, trace, why)))",
        f"lens = vf.analysis.logit_lens(checkpoint, trace, [{asked.position}], targets=[{asked.token}])",
        "print(lens.rank, lens.target_probability)",
        f"terms = vf.analysis.logit_attribution(checkpoint, trace, {asked.position}, {asked.token}, against={against})",
        "print(terms.logit, terms.total, terms.sorted[:5])",
        f"tokens = vf.analysis.input_attribution(checkpoint, trace, {asked.position}, {asked.token}, against={against})",
        "print(tokens.integrated, tokens.missing)",
    ]
    return "\n".join(lines)
