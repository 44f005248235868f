"""The chosen layer for the typed sentence, step by step."""

from vizformer.explain import Step
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.tools.layer.stack import stack_of_site
from vizformer.web.widgets import row_names
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.widgets.number_editor import what_changed
from vizformer.web.widgets.step_view import walk
from vizformer.web.words import labels


@laboratory
def draw_sentence(subject: Subject) -> None:
    """The chosen layer for the typed sentence; after the last one, the prediction."""
    stack, layer = stack_of_site(), state.view().layer
    steps, candidates = subject_cache.layer(subject, stack, layer)
    tokens = {name: labels.texts(found) for name, found in subject.trace.tokens.items()}
    queries = row_names.queries(subject, stack)

    def names(step: Step) -> dict[str, list[str]]:
        keys = tokens["encoder"] if step.key.startswith("cross.") else tokens[stack]
        return {"queries": queries, "keys": keys, "candidates": candidates}

    what_changed(subject)
    before = subject_cache.layer(subject.unedited, stack, layer)[0] if subject.edited else None
    walk(steps, names, before)
