"""A third language comes by a catalogue and a folder of lessons alone: a made one, in which every text stands in ⟦brackets⟧.

What stands on a page outside of all brackets is hard-coded, or it is what was typed, computed or quoted.
"""

import re
from types import MappingProxyType

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from tests.pages.reading import said
from tests.pages.test_every_page import places
from vizformer.analysis.decoding.read_back import bleu
from vizformer.analysis.other_programs.copied_errors import EXERCISES
from vizformer.assets import asset
from vizformer.web.frame import bar
from vizformer.web.lessons.decoding.translation_score import PAIR
from vizformer.web.lessons.tokens.contexts import OCCASIONS
from vizformer.web.link import languages
from vizformer.web.pages import bibliography
from vizformer.web.widgets import model_suggestions, plan, slides
from vizformer.web.words import lesson_words, terms

CODE = "eo"  # a language that Babel knows and VizFormer does not have
PHRASE = re.compile(r"\b[A-Za-z][a-z]{2,} [a-z]{2,}\b")  # two words of English, one after the other
# What is quoted or computed: examples that are typed, two rows of the paper's table, and two pages of names.
EXAMPLES = (
    "She opened the door and went in.",
    "The cat sat on the chair.",
    "The cat sat on the mat.",
    "How good!",
    "Good luck",
    "How are you doing!",
    "dog bites man",
    "Transformer base",
    "Transformer big",
    *model_suggestions.MEANINGS.values(),
    *(line for one in EXERCISES.values() for line in (*one.lines, one.right)),  # programs
    # The texts of head reports.
    *filter(None, asset("corpora", "en.txt").read_text(encoding="utf-8").splitlines()),
    *filter(None, re.split(r"[\t\n]", asset("corpora", "zh.tsv").read_text(encoding="utf-8"))),
    *(text for one in OCCASIONS for text in (one.first, one.second, one.third)),
    *PAIR,  # and its runs of words, last: they stand in other examples too
    *(" ".join(run) for text in PAIR for one in bleu(text, text).runs[1:] for run in one.in_text),
)
ELSEWHERE = ("pages/learn/glossary.py",)  # titles of papers; terms in the other languages
# Code, formulas, markup.
QUOTED = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\\[a-z]+\{[^}]*\}|<style>.*?</style>|<script[^>]*>.*?</script>|<[^>]*>|&\w+;",
    re.DOTALL,
)
STRING, QUOTE = re.compile(r'"((?:[^"\\]|\\.)*)"'), r'"⟦\1⟧"'


def bracketed(text: str) -> str:
    return f"⟦{text}⟧"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A catalogue and lessons as a translator would hand them in."""
    root = tmp_path_factory.mktemp("assets")
    with asset("locale", "zh_CN", "LC_MESSAGES", "vizformer.po").open("rb") as file:
        template = read_po(file, locale="zh_CN")
    made = Catalog(locale=CODE)
    for entry in template:
        if entry.id and entry.pluralizable:
            made.add(entry.id, tuple(map(bracketed, entry.id)), flags=entry.flags)
        elif entry.id:
            made.add(entry.id, bracketed(entry.id), flags=entry.flags)
    path = root / "locale" / CODE / "LC_MESSAGES" / "vizformer.po"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        write_po(file, made)
    lessons = root / "lessons" / CODE
    lessons.mkdir(parents=True)
    for lesson in asset("lessons", "en").glob("*.toml"):
        text = re.sub(r"'''\n?(.*?)\n?'''", r"'''⟦\1⟧'''", lesson.read_text(encoding="utf-8"), flags=re.DOTALL)
        (lessons / lesson.name).write_text(STRING.sub(QUOTE, text), encoding="utf-8")
    for table in ("glossary.toml", "notations.toml", "plan.toml", "reading.toml"):
        text = asset("lessons", table).read_text(encoding="utf-8")
        column = re.compile(r"^en = (.*)$", re.MULTILINE)
        own = column.sub(lambda found: f"{found[0]}\n{CODE} = {STRING.sub(QUOTE, found[1])}", text)
        (root / "lessons" / table).write_text(own, encoding="utf-8")
    return root


@pytest.fixture(autouse=True)
def third_language(folder, monkeypatch):
    def found(*parts: str):
        own = folder.joinpath(*parts)
        return own if own.exists() else asset(*parts)

    known = MappingProxyType({**languages.LANGUAGES, CODE: "Esperanto"})
    for module in (languages, bar, terms):
        monkeypatch.setattr(module, "LANGUAGES", known)
    for module in (languages, lesson_words, terms, bibliography, plan):
        monkeypatch.setattr(module, "asset", found)
    kept = (languages.match, languages.catalogue, languages.plurals, languages._read, slides.lesson_prose)
    kept += (lesson_words.tables, lesson_words._found, terms._file, terms.read_terms, bar.index, bibliography.items)
    kept += (plan.tables,)
    for function in kept:
        function.cache_clear()
    yield
    for function in kept:
        function.cache_clear()


def outside(text: str) -> str:
    """What stands outside of all brackets, which may hold others; a sentence that is made of two stays apart."""
    depth, kept = 0, []
    for character in text:
        depth += (character == "⟦") - (character == "⟧")
        if depth == 0:
            kept.append(" · " if character == "⟧" else character)
    return "".join(kept)


def shown(app) -> list[str]:
    """Every text of a page: what is written on it, and the labels and choices of its widgets."""
    asked = (*app.text_input, *app.text_area, *app.number_input, *app.selectbox, *app.multiselect, *app.radio)
    widgets = (*asked, *app.button_group, *app.button, *app.slider, *app.checkbox, *app.toggle, *app.expander)
    labels = [getattr(widget, "label", "") for widget in widgets]
    options = [str(option) for widget in (*app.radio, *app.button_group) for option in widget.options]
    boxes = [box.value for box in (*app.info, *app.warning, *app.title)]
    return [said(app), *labels, *options, *map(str, boxes)]


@pytest.mark.sweep
@pytest.mark.sample(1)
@pytest.mark.parametrize("model", ["zh-en", "cloze"])
def test_every_text_of_a_page_is_in_the_readers_language(open_app, model):
    app = open_app("pages/explore/attention.py", lang=CODE, model=model, text="好！")
    wrong = []
    for page, part in places():
        app.switch_page(page)
        for name, value in dict(model=model, text="好！", part=part, lang=CODE).items():
            app.query_params[name] = value
        app.run()
        assert not app.exception, (page, part)
        for text in shown(app) if page not in ELSEWHERE else ():
            for example in EXAMPLES:
                text = text.replace(example, " ; ")
            for line in outside(QUOTED.sub(" ; ", text)).splitlines():
                wrong += [f"{page} {part}: {phrase}  ({line.strip()[:100]})" for phrase in PHRASE.findall(line)]
    assert not wrong, "\n".join(sorted(set(wrong)))
