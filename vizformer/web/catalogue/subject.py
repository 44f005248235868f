"""What the pages look at: a model and what it reads."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from vizformer import generation
from vizformer.config import ModelConfig, ModelShape
from vizformer.context_value import held
from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.bounded_cache import TRACES, cached
from vizformer.web.link import edits
from vizformer.web.link.model_ref import ModelRef

if TYPE_CHECKING:
    from vizformer.checkpoints import Opened
    from vizformer.generation import Candidates, End
    from vizformer.model import Trace
    from vizformer.text import Token


LONG = 1000  # tokens of a text from which on its forward is followed; shorter ones are done in the time of a picture,
MUCH = 4e9  # or take so many multiplications: a tenth of a second of one core
_HEARD: "ContextVar[Callable[[int, int], None] | None]" = ContextVar("heard", default=None)


@dataclass(frozen=True)
class Subject:
    """A model, what it reads, and the numbers set by hand; hashable, so that it can key caches."""

    model: ModelRef
    text: str
    target: str
    edited: str = ""

    @property
    def config(self) -> ModelConfig:
        """The model's options, from its file."""
        return model_cache.options(self.model)

    @property
    def shape(self) -> ModelShape:
        """The shape of the model, also of a recorded one."""
        return model_cache.shape(self.model)

    @property
    def checkpoint(self) -> "Opened":
        """The model with its tokenizer."""
        return model_cache.checkpoint(self.model)

    @property
    def title(self) -> str:
        """The name of the model in lists."""
        return sources.title(self.model)

    @property
    def trace(self) -> "Trace":
        return trace(self)

    @property
    def tokens(self) -> "tuple[Token, ...]":
        """The tokens of the text, as the stack reads them that reads it."""
        tokens = self.trace.tokens
        return tokens["encoder"] if "encoder" in tokens else tokens["decoder"]

    @property
    def writes_its_target(self) -> bool:
        """Whether the target is what the model itself writes, with no number set by hand."""
        shape = self.shape
        both = shape.architecture == "encoder-decoder"
        given = self.target.strip() or self.edited
        return both and not given and 0 < len(shape.start_ids) < shape.max_positions

    @property
    def unedited(self) -> "Subject":
        return replace(self, edited="") if self.edited else self

    @property
    def is_long(self) -> bool:
        """Whether the forward is still to be done, and long: that of the text, or of the target that was given."""
        if trace.holds(self):
            return False
        try:
            n = len(self.checkpoint.encode(self.text))
            if self.shape.architecture == "encoder-decoder" and self.target.strip():
                n = max(n, len(self.checkpoint.encode_target(self.target)))
            return n > LONG or (self.model.is_from_elsewhere and n * model_cache.n_parameters(self.model) > MUCH)
        except VizformerError:
            return False

    @property
    def is_cut_off(self) -> bool:
        """Whether the model was still generating its target when the limit came."""
        from vizformer.checkpoints.any_checkpoint import MAX_TARGET

        return not self.target.strip() and len(self.trace.tokens.get("decoder", ())) > MAX_TARGET

    @property
    def translation(self) -> str | None:
        """The target in words; None where the model has none."""
        tokens = self.trace.tokens
        if not {"encoder", "decoder"} <= tokens.keys():
            return None
        return self.checkpoint.tokenizer.decode([token.id for token in tokens["decoder"]]).strip()


@cached(cache=TRACES, refusals=lambda subject: model_cache.is_settled(subject.model))
def trace(subject: Subject) -> "Trace":
    """One forward with everything kept; `edited` are numbers set by hand (`vizformer.web.link.edits`)."""
    heard, loaded = _HEARD.get(), subject.checkpoint
    if subject.writes_its_target:
        ids = [*subject.shape.start_ids, *(id for id in generated(subject).ids if id != subject.shape.eos_id)]
        return loaded.trace(subject.text, target_ids=ids, heard=heard)
    edit = edits.edit(subject.edited)
    return loaded.trace(subject.text, target=subject.target or None, edit=edit, heard=heard)


@dataclass(frozen=True)
class Generated:
    """A text that a model wrote: the id of each token, the end mark among them, and why it ends."""

    ids: tuple[int, ...]
    end: "End | None"


@cached
def generated(subject: Subject) -> Generated:
    """The text that a model with `writes_its_target` generates: the target that `Checkpoint.trace` would generate."""
    from vizformer.checkpoints.any_checkpoint import MAX_TARGET

    most = min(MAX_TARGET, subject.shape.max_positions - 1)
    steps = [(step.id, step.end) for step in subject.checkpoint.stream(subject.text, max_new=most)]
    return Generated(tuple(id for id, __ in steps), steps[-1][1])


@cached
def written(subject: Subject) -> "Candidates":
    """The generated text with the leading candidates of every token.  They are taken from the trace, whose
    rows of logits are those that the tokens were chosen from."""
    found, shape, logits = generated(subject), subject.shape, subject.trace.logits
    length = len(shape.start_ids)
    return generation.leading_candidates(
        generation.GenerationStep(
            id,
            partial(generation.next_token, logits[length + number - 1], never=shape.never_written),
            length + number,
            0,
            end=found.end if number == len(found.ids) - 1 else None,
        )
        for number, id in enumerate(found.ids)
    )


def listening(heard: "Callable[[int, int], None]") -> "AbstractContextManager[None]":
    """Has `heard` called after every layer of the forwards of this thread; what it raises ends them."""
    return held(_HEARD, heard)
