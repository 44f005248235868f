"""Cached computations of the page Where does the answer come from?"""

from typing import TYPE_CHECKING, cast

from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis import Removed, answer_evidence, input_attribution, logit_attribution, logit_lens, taken_out
from vizformer.analysis.attribution.direct import by_key, what_is_frozen
from vizformer.analysis.attribution.lens import right_tokens, what_is_inexact
from vizformer.analysis.attribution.terms import Against
from vizformer.analysis.heads.residual_contributions import key_contributions
from vizformer.messages import Message
from vizformer.recorder.recorded_trace import KeyShares
from vizformer.recorder.shares import LogitShares
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.words import labels

if TYPE_CHECKING:
    from vizformer.checkpoints.recorded.checkpoint import RecordedCheckpoint

right = of_run(right_tokens)
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
def texts(subject: Subject, ids: tuple[int, ...]) -> tuple[str, ...]:
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
