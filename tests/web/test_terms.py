"""Terms of the glossary in running text: which are marked, and what is said of them."""

import re

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from vizformer.web.frame import term_sentences
from vizformer.web.link.languages import LANGUAGES
from vizformer.web.widgets import lab, slides
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words import i18n
from vizformer.web.words.terms import in_letters, marked, read_terms, unmarked


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("A head is a head.", "en", "A [head](#term-head) is a head."),
        ("Every **query** has keys.", "en", "Every [**query**](#term-query) has [keys](#term-key)."),
        ("**Only queries** ask.", "en", "**Only queries** ask."),
        ("An **embedding**s", "en", "An **embedding**s"),
        ("Overheads and maskless", "en", "Overheads and maskless"),
        ("The masked self-attention of it", "en", "The [masked self-attention](#term-causal-mask) of it"),
        ("$head$, `head`, “head”, {head}, [head](/there), \"head\"", "en", ...),
        ("# A head\n| head | 1 |", "en", ...),
        ("切成**词元**（token），再看查询。", "zh_CN", "切成[**词元**](#term-token)（token），再看[查询](#term-query)。"),
        ("叫**头**，开头有键盘。", "zh_CN", "叫[**头**](#term-head)，开头有键盘。"),
    ],
)  # fmt: skip
def test_a_term_is_marked_where_it_stands_for_itself(text, code, expected):
    assert marked(text, code) == (text if expected is ... else expected)


def test_three_are_marked_in_a_paragraph_those_with_the_longest_names_and_each_once_in_a_text():
    text = "A head, a token, a layer, and its attention weights.\n\nA head and a token."
    found = marked(text, "en")
    assert re.findall(r"#term-([\w-]+)", found) == ["token", "layer", "attention-weight", "head"]
    assert unmarked(found) == text


def test_a_note_marks_its_terms_and_shows_its_values_as_they_stand(monkeypatch):
    said = list[str]()
    monkeypatch.setattr(i18n.st, "caption", said.append)
    i18n.show_note("The head of {name}: every head.", name="a *head*")
    assert said == [r"The [head](#term-head) of a \*head\*: every head."]


def test_a_caption_of_a_lesson_marks_the_terms_that_the_text_beside_it_has_not(monkeypatch):
    said = list[str]()
    monkeypatch.setattr(lab.st, "caption", said.append)
    Laboratory("costs", "family").note("mixtral")
    Laboratory("heads", "groups").note("memory", n=3)
    assert ["[parameters](#term-parameter)" in said[0], "[cross-attention](#term-cross-attention)" in said[1]] == [
        True,
        True,
    ]
    beside = slides.lesson_prose("heads", "en")["groups"].terms
    assert "head" in beside
    assert (
        slides.noted("A head has 3 parameters.", "heads", "groups", "en")
        == "A head has 3 [parameters](#term-parameter)."
    )


def test_an_everyday_word_is_a_term_in_the_lessons_that_teach_it_alone():
    assert "#term" not in marked("The expected value stays.", "en", "training")
    assert "#term-value" in marked("Each token has a value.", "en", "qkv")


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_term_is_found_by_its_name_and_every_lesson_marks_some(code):
    for key, term in read_terms(code).items():
        name = re.sub(r"[（(].*", "", term.name).strip()
        found = re.findall(r"#term-([\w-]+)", marked(name, code, term.lessons[0]))
        assert found == [key] or len(name) == 1, (name, found)
    for lesson in ("qkv", "heads", "block"):
        for part, words in slides.lesson_prose(lesson, code).items():
            assert "](#term-" in words.text, (lesson, part)
            assert all(paragraph.count("](#term-") <= 3 for paragraph in words.text.split("\n\n"))


def test_a_sentence_is_said_in_letters_without_markdown_or_latex():
    assert in_letters(r"$q_i \cdot k_j / \sqrt{d_k}$ of `it`, $d_\mathrm{head} \times -\ln p$") == (
        "q_i · k_j / √d_k of it, d_head × −ln p"
    )
    for code in LANGUAGES:
        for term in read_terms(code).values():
            assert not re.search(r"[\\$`*{}]", in_letters(term.text)), term.text


def test_the_sentences_of_a_language_lie_at_an_address_that_browsers_keep():
    client = TestClient(Starlette(routes=term_sentences.routes()))
    for code in LANGUAGES:
        found = client.get(f"{term_sentences.address()}{code.replace('_', '-')}.json")
        assert (found.status_code, "immutable" in found.headers["cache-control"]) == (200, True)
        assert found.json() == {key: [term.name, in_letters(term.text)] for key, term in read_terms(code).items()}
    assert client.get(f"{term_sentences.address()}xx.json").status_code == 404
