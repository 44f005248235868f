"""One gap: the most probable words for it, how well the hidden one was found, and where the gap looks."""

import json

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.link import state
from vizformer.web.link.model_ref import USUAL_DTYPE
from vizformer.web.tools.fill_mask import computations
from vizformer.web.tools.fill_mask.computations import Positions, Shown, mask_piece, masked_text
from vizformer.web.widgets import chart, in_python
from vizformer.web.widgets.answer_question import ask_why
from vizformer.web.widgets.laboratories import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

_HEAD = "blanks.head"


def candidates(subject: Subject, shown: Shown, hidden: Positions, focus: int, truth: bool) -> None:
    best = computations.predictions(subject.unedited, hidden, focus)
    chart.show(
        figures.next_token_bars(
            labels.told_apart([p.token for p in best]),
            np.array([p.probability for p in best], dtype=np.float32),
            title=_("Most probable at position {position}", position=focus),
        ),
        key="blanks.bars",
        code=lambda: code_of_gap(subject, hidden, focus),
    )
    text = masked_text(subject, shown, hidden)
    ask_why(best[0].token.text, focus, key="blanks.why", text=text, target="", edits="")
    if not truth:
        return
    found = computations.guess(subject.unedited, hidden, focus)
    text = shown[focus].text
    st.text(
        _(
            "The hidden word was “{text}”: the model's first choice, {percent}.",
            text=text,
            percent=labels.percent(found.probability),
        )
        if found.rank == 0
        else _(
            "The hidden word was “{text}”: rank {rank} for the model, {percent}.",
            text=text,
            rank=found.rank + 1,
            percent=labels.percent(found.probability),
        )
    )


@laboratory
def attention(subject: Subject, shown: Shown, hidden: Positions, all_hidden: Positions, focus: int) -> None:
    shape = subject.shape
    names = {-1: _("All heads, averaged"), **{h: _("Head {head}", head=h) for h in range(shape.n_heads)}}
    head = st.selectbox(_("Heads"), list(names), format_func=names.__getitem__, key=_HEAD)
    weights = computations.looks_at(subject.unedited, hidden, focus, None if head == -1 else head)
    rows = {  # a row of this picture is a layer, its query always the gap
        "query": _("Layer"),
        "attends": _("{query_token}: the gap attends to key {key} “{key_token}” with weight {value}"),
    }
    keys = [mask_piece(subject) if i in all_hidden else token.text for i, token in enumerate(shown)]
    chart.show(
        figures.attention_heatmap(
            weights.astype(np.float32),
            [_("Layer {layer}", layer=layer) for layer in range(len(weights))],
            keys,
            title=_("Attention of the gap at position {position}", position=focus),
            words=rows,
        ),
        key="blanks.map",
    )
    if presses.button("→ " + _("Every head for the sentence with its gaps"), key="blanks.heads"):
        state.update(text=masked_text(subject, shown, hidden), kind="encoder", query=focus)
        st.switch_page("pages/explore/attention.py")


def code_of_gap(subject: Subject, hidden: Positions, position: int) -> dict[str, str]:
    """The most probable words of one gap, by the package that the code needs."""
    places, model = ", ".join(map(str, sorted(hidden))), subject.model
    found = {
        "vizformer": "\n".join(
            [
                "import vizformer as vf",
                "from vizformer.analysis import hide, next_tokens",
                "",
                f"checkpoint = {in_python.loaded(model)}",
                f"tokens = checkpoint.encode({subject.text!r})",
                f"trace = hide(checkpoint, tokens, {{{places}}})",
                f"best = next_tokens(checkpoint, trace, {position})",
                "print([(one.token.text, one.probability) for one in best])",
            ]
        )
    }
    if model_cache.written_as(subject.model) != "hugging-face" or model.dtype != USUAL_DTYPE:
        return found
    mask = subject.shape.mask_id
    ids = [mask if at in hidden else token.id for at, token in enumerate(subject.tokens)]
    name, at = in_python.name_and_revision(model)
    segments = subject.checkpoint.segments(subject.tokens)
    given = "" if segments is None else f", token_type_ids=torch.tensor({segments.tolist()})"
    found["transformers"] = "\n".join(
        [
            "import torch",
            "from transformers import AutoModelForMaskedLM, AutoTokenizer",
            "",
            f"name = {json.dumps(name, ensure_ascii=False)}",
            f"model = AutoModelForMaskedLM.from_pretrained(name{at}).eval()",
            "with torch.no_grad():",
            f"    logits = model(torch.tensor([{ids}]){given}).logits[0, {position}]",
            "best = logits.double().softmax(-1).topk(10)",
            f"names = AutoTokenizer.from_pretrained(name{at}).convert_ids_to_tokens(best.indices.tolist())",
            "print(list(zip(names, best.values.tolist())))",
        ]
    )
    return found
