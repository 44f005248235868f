"""Side by side: two models on one text, or one model on two: where their heads, streams, answers and weights differ."""

from vizformer.web.catalogue.subject import Subject
from vizformer.web.tools.side_by_side.answers import draw_answers
from vizformer.web.tools.side_by_side.heads import draw_heads
from vizformer.web.tools.side_by_side.in_python import draw_in_python
from vizformer.web.tools.side_by_side.one_head import draw_one_head
from vizformer.web.tools.side_by_side.pair import choose
from vizformer.web.tools.side_by_side.similarity import draw_similarity
from vizformer.web.tools.side_by_side.streams import draw_streams
from vizformer.web.tools.side_by_side.weights import draw_weights
from vizformer.web.widgets.choices import line
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.model_input import subject_box
from vizformer.web.words.errors import guarded


def page() -> None:
    subject = subject_box()
    if subject is not None:
        parts(subject)


@laboratory
def parts(subject: Subject) -> None:
    pair = choose(subject)
    if pair is None:
        return
    guarded()(draw_similarity)(pair)
    guarded()(draw_heads)(pair, line())
    for part in (draw_one_head, draw_streams, draw_answers, draw_weights, draw_in_python):
        guarded()(part)(pair)


page()
