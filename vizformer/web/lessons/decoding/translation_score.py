"""The laboratory BLEU by hand: a translation against a person's, run of words by run of words."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.decoding.read_back import LONGEST, Bleu, bleu
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.explain import latex
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject, generated
from vizformer.web.lessons.decoding.writing import writes
from vizformer.web.link.beginnings import CHINESE, ENGLISH
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.widgets.model_input import ask_other_sentence
from vizformer.web.widgets.model_suggestions import MEANINGS
from vizformer.web.words.i18n import _

lab = Laboratory("decoding", "bleu")
SHOWN = 24  # runs of words
PAIR = (
    "the cat the cat is on the mat",
    "the cat is on the mat",
)  # of models that do not translate, and while one is missing
FREE = {CHINESE.text: "I have a cat of my own.", ENGLISH.text: "我养了一只猫。"}  # translations as good, in other words
PERSONS = {**{meaning: text for text, meaning in MEANINGS.items()}, **MEANINGS, **FREE}


@cached
def proposed(subject: Subject) -> tuple[str, str]:
    """The translation that the page shows, and a person's; empty where nobody has written one."""
    if subject.config.architecture != "encoder-decoder" or not writes(subject):
        return PAIR
    own = subject.target.strip()
    if not own and subject.writes_its_target:
        own = subject.checkpoint.tokenizer.decode(list(generated(subject).ids)).strip()
    return own, PERSONS.get(subject.text.strip(), "")


@lab.draws
def draw_translation_score(subject: Subject) -> None:
    translation, reference = proposed(subject)
    left, right = st.columns(2)
    translation = ask_other_sentence(lab.text("translation"), "third", translation, subject.text, on=left)
    reference = ask_other_sentence(lab.text("reference"), "second", reference, subject.text, on=right)
    if not translation or not reference:
        st.info(lab.text("missing", translation=PAIR[0], reference=PAIR[1]))
        translation, reference = PAIR
    found = bleu(translation, reference)
    with controls():
        n = lab.buttons("n", {n: str(n) for n in range(1, LONGEST + 1)}, 2)
    names = [f"p{i} = {one.counted}/{one.in_text.total()}" for i, one in enumerate(found.runs, 1)]
    shares = np.array([one.precision for one in found.runs])
    picture = figures.next_token_bars(names, shares, title=f"BLEU = {found.score:.3f}").update_xaxes(title="")
    chart.show(picture, key="decoding.bleu")
    runs = found.runs[n - 1]
    rows = [
        Row(
            " ".join(run),
            *(Number(count, str(count)) for count in (own, runs.in_reference[run], least)),
            kind="marked" if least < own else "",
        )
        for run, own in runs.in_text.items()
        for least in (min(own, runs.in_reference[run]),)
    ]
    st.html(table.style() + table.to_html(lab.columns("run", "own", "other", "counts"), rows[:SHOWN]))
    if len(rows) > SHOWN:
        lab.note("first", shown=SHOWN, n=len(rows))
    if any(row.kind for row in rows):
        lab.note("clipped")
    lab.say("words", c=found.words, r=found.reference_words)
    lesson.ask(counted(subject, translation, reference), folded=True)
    _formula(found)


def _formula(found: Bleu) -> None:
    """The score, with the shares and the penalty in it."""
    product = r" \cdot ".join(
        rf"\frac{{{one.counted}}}{{{one.in_text.total()}}}" if one.in_text else "0" for one in found.runs
    )
    c, r, penalty = found.words, found.reference_words, found.brevity_penalty
    brevity = rf"e^{{1 - {r}/{c}}} = {latex.number(penalty)}" if c < r else "1"
    lesson.formula(
        r"\begin{gathered} \mathrm{BLEU} = \mathrm{BP} \cdot (p_1\,p_2\,p_3\,p_4)^{1/4} \\[1ex] "
        r"p_n = \frac{\text{counted}}{\text{all}} \qquad \mathrm{BP} = \min(1,\ e^{1 - r/c}) \end{gathered}",
        live=rf"\begin{{aligned}} \mathrm{{BP}} &= {brevity} \\[1ex] \mathrm{{BLEU}} &= {latex.number(penalty)} \cdot "
        rf"\left({product}\right)^{{1/4}} = {latex.number(found.score)} \end{{aligned}}",
        code="counted, all = torch.tensor(counted), torch.tensor(all)\n"
        "p = counted / all.clamp(min=1)  # of a text with fewer words nothing is counted\n"
        "bleu = min(1, math.exp(1 - r / c)) * p.prod() ** (1 / 4)",
        given={
            "counted": [one.counted for one in found.runs],
            "all": [one.in_text.total() for one in found.runs],
            "c": c,
            "r": r,
        },
    )
    if not found.score:
        lab.note("zero")


@lab.asks("counted")
def counted(subject: Subject, translation: str = "", reference: str = "") -> lesson.Number | None:
    if not translation:
        translation, reference = proposed(subject)
    if not translation or not reference:
        translation, reference = PAIR
    runs = bleu(translation, reference).runs[1]
    total = runs.in_text.total()
    if not total:
        return None
    missing = (" ".join(run) for run in (runs.in_text - runs.in_reference).elements())
    listed = _("; ").join(missing) or lab.text("none")
    values = {"translation": translation, "reference": reference, "total": total, "missing": listed}
    words = bleu(translation, reference).runs[0].counted
    wrong = {"all": total, "words": words, "missing": total - runs.counted}
    said = lab.asked("counted", translation, reference, wrong=wrong, **values)
    return lesson.Number(answer=runs.counted, **said)
