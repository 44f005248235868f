"""The questions of the lesson Add & norm, feed-forward."""

from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.block import (
    build,
    computations,
    count,
    dropout,
    feed_forward,
    neurons,
    norm,
    order,
    residual,
    stream,
)
from vizformer.web.lessons.block.place import Place
from vizformer.web.link.view import View
from vizformer.web.widgets.questions import Choice, Number, Registry


def _stack(subject: Subject) -> str:
    return "encoder" if "encoder" in subject.trace.tokens else "decoder"


def _n(subject: Subject) -> int:
    return len(subject.trace.tokens[_stack(subject)])


def _growth(subject: Subject) -> Choice:
    stack = _stack(subject)
    return stream.growth_question(subject, Place(stack, 0, View().query_of(subject.trace.tokens[stack])))


def _silent(subject: Subject) -> Number:
    return neurons.silent_question(subject, _stack(subject))


def _neighbour(subject: Subject) -> Choice | None:
    if subject.config.norm_order == "none" or not all(
        model_cache.reads(subject.model, text) for text in norm.NEIGHBOURS
    ):
        return None
    return norm.neighbour_question(computations.neighbour_effect(subject, _stack(subject), 0, "self", *norm.NEIGHBOURS))


QUESTIONS: Registry = {
    "growth": _growth,
    "length": norm.length_question,
    "neighbour": _neighbour,
    "depth": lambda subject: residual.depth_question(),
    "warmup": lambda subject: order.warmup_question(),
    "alone": lambda subject: feed_forward.alone_question(_n(subject)),
    "silent": _silent,
    "scale": lambda subject: dropout.scale_question(),
    "count": lambda subject: count.count_question(),
    "order": lambda subject: build.order_question(),
}
