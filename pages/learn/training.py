"""Training: the loss, its smoothing, the learning rate, Adam, the gradient, and what a training does without."""

from vizformer.web.frame import sitemap
from vizformer.web.lessons import training
from vizformer.web.widgets import lesson


def page() -> None:
    terms = (
        "cross-entropy",
        "perplexity",
        "label-smoothing",
        "gradient",
        "learning-rate",
        "warm-up",
        "adam",
        "dropout",
        "overfitting",
        "fine-tuning",
        "weight-tying",
        "padding",
        "checkpoint-averaging",
    )
    lesson.show(sitemap.TRAINING, training.PARTS, terms=terms)


page()
