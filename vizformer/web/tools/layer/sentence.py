"""The chosen layer for the typed sentence, step by step."""

from vizformer.explain import Step
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.tools.layer.stack import stack_of_site
from vizformer.web.widgets import attention_selector, row_names
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.number_editor import what_changed
from vizformer.web.widgets.step_view import walk
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_note


@laboratory
def draw_sentence(subject: Subject) -> None:
    """The chosen layer for the typed sentence; after the last one, the prediction."""
    stack, layer = stack_of_site(), state.view().layer
    if not subject.checkpoint.is_own:
        _draw_row(subject, stack, layer)
        return
    steps, candidates = subject_cache.layer(subject, stack, layer)
    tokens = {name: labels.texts(found) for name, found in subject.trace.tokens.items()}
    queries = row_names.queries(subject, stack)

    def names(step: Step) -> dict[str, list[str]]:
        keys = tokens["encoder"] if step.key.startswith("cross.") else tokens[stack]
        return {"queries": queries, "keys": keys, "candidates": candidates}

    what_changed(subject)
    before = subject_cache.layer(subject.unedited, stack, layer)[0] if subject.edited else None
    walk(steps, names, before)


def _draw_row(subject: Subject, stack: str, layer: int) -> None:
    """Draws one row of a recorded model's layer by the calls of the model's own code."""
    attention_selector.choose_query(subject, stack, _("Row"))
    queries = row_names.queries(subject, stack)
    row = state.view().query_of(subject.trace.tokens[stack])
    show_note(
        "One row of this layer, call by call of the model's own code. For the calls of its attention see Step by step."
    )
    walk(subject_cache.recorded_layer(subject, stack, layer, row), lambda step: {"queries": queries})
