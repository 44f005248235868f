"""Models and subjects as tests name them: by what a link says."""

from vizformer.web.catalogue import sources
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef


def ref(model: str | ModelRef) -> ModelRef:
    """The reference that a link means."""
    return ModelRef.parse(model) if isinstance(model, str) else model


def stamped(model: str | ModelRef) -> ModelRef:
    """The same with the stamp of its files, by which caches know it."""
    return sources.stamped(ref(model))


def subject(model: str | ModelRef, text: str, target: str = "", edited: str = "") -> Subject:
    """What a page would look at."""
    return Subject(stamped(model), text, target, edited)
