"""The laboratory Drafts: speculative decoding, with the model's own first layers as the draft."""

import streamlit as st
import torch

from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.explain import latex
from vizformer.generation.speculative import Round, checked, next_distributions, speculative_rounds
from vizformer.text import Token
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.decoding.writing import MOST_NEW, say_unless_writes
from vizformer.web.widgets import lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels

lab = Laboratory("decoding", "drafts")
MOST_DRAFTED, LAST_SEED, SHOWN = 5, 999, 6
LONGEST = 256  # tokens of a text to go on with: each round reads it anew, as often as it drafts
ACCEPTED, REFUSED, APART = "✓ ", "✗ ", "\u2003"


@cached
def rounds(subject: Subject, layers: int, drafts: int, temperature: float, seed: int) -> tuple[Round, ...]:
    """The text that is written, round by round."""
    prompt, prefix = _beginning(subject)
    options = dict(layers=layers, drafts=drafts, max_new=MOST_NEW, seed=seed)
    return tuple(speculative_rounds(subject.checkpoint.model, prompt, prefix, temperature=temperature, **options))


@cached
def first_place(subject: Subject, layers: int, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """p and q of the first new token."""
    model, (prompt, prefix) = subject.checkpoint.model, _beginning(subject)
    with torch.inference_mode():
        memory = (
            None if model.encoder is None else model.encode(torch.tensor([prompt], device=subject.checkpoint.device))
        )
        read = prompt if memory is None else prefix
        p, q = (next_distributions(model, read, memory, temperature, layers=depth)[0] for depth in (None, layers))
    return p, q


@lab.draws
def draw(subject: Subject) -> None:
    """What was drafted and what became of it; where each token of the first place comes from."""
    if not say_unless_writes(lab, subject):
        return
    if (n := len(subject.checkpoint.opening(subject.text)[1])) > LONGEST:
        st.info(lab.text("long", n=n, most=LONGEST))
        return
    depth = subject.config.n_decoder_layers
    with controls():
        layers = lab.slider("draft_layers", 1, depth, max(1, depth - 1)) if depth > 1 else 1
        drafts = lab.slider("drafts", 1, MOST_DRAFTED, 3)
        temperature = lab.slider("draft_temperature", 0.0, 2.0, 1.0, 0.1)
        seed = st.number_input(
            lab.text("draft_seed"), 0, LAST_SEED, **lab.setting("draft_seed", 0, range(LAST_SEED + 1))
        )
    found = rounds(subject, layers, drafts, temperature, seed)
    ids = [id for one in found for id in (*(token.id for token in one.drafted), *one.ids)]
    tokens = subject.checkpoint.tokenizer.tokens(ids)
    names = dict(zip([token.id for token in tokens], labels.texts(tokens), strict=True))
    rows = [
        Row(
            Number(number, str(number)),
            APART.join((ACCEPTED if one.is_accepted else REFUSED) + names[one.id] for one in each.drafted),
            "" if each.own is None else names[each.own],
        )
        for number, each in enumerate(found, 1)
    ]
    st.html(table.style() + table.to_html(lab.columns("round", "drafted", "own"), rows))
    new, offered = sum(len(one.ids) for one in found), [one for each in found for one in each.drafted]
    taken = sum(one.is_accepted for one in offered)
    lab.say("counted", rounds=len(found), new=new, taken=taken, offered=len(offered), layers=layers, depth=depth)
    lesson.ask(accepted(subject))
    lesson.ask(draft(subject))
    _first(subject, layers, temperature)


def _first(subject: Subject, layers: int, temperature: float) -> None:
    """The rule for the first place, token by token."""
    p, q = first_place(subject, layers, temperature)
    kept, instead = checked(p, q)
    ids = torch.maximum(p, q).topk(min(SHOWN, len(p))).indices.tolist()
    tokens: tuple[Token, ...] = subject.checkpoint.tokenizer.tokens(ids)
    rows = [
        Row(name, *(float(one[id]) for one in (q, p, kept, instead)))
        for name, id in zip(labels.told_apart(list(tokens)), ids, strict=True)
    ]
    rows.append(Row(lab.text("all"), *(float(one.sum()) for one in (q, p, kept, instead)), kind="sum"))
    columns = lab.columns("token", "q", "p", "kept", "instead")
    st.html(table.to_html(columns, rows, caption=lab.text("place")))
    lab.note("sum", error=f"{float((kept + instead - p).abs().max()):.1g}")
    taken, drawn, own = (latex.number(float(one[ids[0]])) for one in (kept, instead, p))
    lesson.formula(
        r"\underbrace{\min(p, q)}_{\text{drafted and taken}} + \underbrace{\max(0,\, p - q)}_{\text{instead}} = p",
        live=f"{taken} + {drawn} = {own}",
        code="kept = torch.minimum(p, q)\ninstead = (p - q).clamp(min=0)\nsame = kept + instead",
        given={"p": p[ids].numpy(), "q": q[ids].numpy()},
    )


@lab.asks("accepted")
def accepted(subject: Subject) -> lesson.Number:
    said = lab.asked("accepted", wrong={"product": 0.18, "own": 0.3, "turned": 2})
    return lesson.Number(answer=0.5, tolerance=0.01, written="{:.3g}".format, **said)


@lab.asks("draft")
def draft(subject: Subject) -> lesson.Choice:
    return lab.choice("draft", ("text", "time", "both"), "time")


def _beginning(subject: Subject) -> tuple[list[int], list[int]]:
    """What the encoder reads (or the text begins with), and what the decoder begins with behind an encoder."""
    prompt, beginning = ([token.id for token in tokens] for tokens in subject.checkpoint.opening(subject.text))
    return (prompt, beginning) if subject.checkpoint.model.encoder is not None else (beginning, [])
