"""The questions of the lesson Query, key, value."""

from vizformer.analysis import Kind, kinds
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.qkv import lookup, scaling, step_by_step, three_matrices
from vizformer.web.widgets.questions import Choice, Registry


def _kind(subject: Subject) -> Kind:
    return kinds(subject.trace)[0]


def _scale(subject: Subject) -> Choice | None:
    if subject.config.attention_scale is not None:  # the model does not divide by sqrt(d)
        return None
    return scaling.scale_question(subject, _kind(subject))


QUESTIONS: Registry = {
    "self": lambda subject: lookup.self_question(subject, _kind(subject)),
    "ratio": lambda subject: step_by_step.ratio_question(subject, _kind(subject)),
    "side": lambda subject: three_matrices.side_question(subject, _kind(subject)),
    "scale": _scale,
}
