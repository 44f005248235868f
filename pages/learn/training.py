"""Lesson 10: the loss, its smoothing, the learning rate, Adam, the gradient, and what a training does without."""

from vizformer.messages import N_
from vizformer.web.frame import sitemap
from vizformer.web.lessons.training.adam import adam
from vizformer.web.lessons.training.averaging import averaging
from vizformer.web.lessons.training.batches import batches
from vizformer.web.lessons.training.dropout import dropout
from vizformer.web.lessons.training.gradient import gradient
from vizformer.web.lessons.training.left_out import left_out
from vizformer.web.lessons.training.loss import loss
from vizformer.web.lessons.training.rate import rate
from vizformer.web.lessons.training.sharing import sharing
from vizformer.web.lessons.training.smoothing import smoothing
from vizformer.web.widgets import lesson


def page() -> None:
    parts = [
        lesson.Part("loss", N_("Loss"), loss),
        lesson.Part("smoothing", N_("Smoothing"), smoothing),
        lesson.Part("rate", N_("Learning rate"), rate),
        lesson.Part("adam", N_("Adam"), adam),
        lesson.Part("gradient", N_("Gradient"), gradient),
        lesson.Part("without", N_("Left out"), left_out),
        lesson.Part("dropout", N_("Dropout"), dropout),
        lesson.Part("sharing", N_("Shared weights"), sharing),
        lesson.Part("batches", N_("Batches"), batches),
        lesson.Part("average", N_("Averaging"), averaging),
    ]
    terms = (
        "cross-entropy",
        "perplexity",
        "label-smoothing",
        "gradient",
        "learning-rate",
        "warm-up",
        "adam",
        "dropout",
        "weight-tying",
        "padding",
        "checkpoint-averaging",
    )
    lesson.show(sitemap.TRAINING, parts, terms=terms)


page()
