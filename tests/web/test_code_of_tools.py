"""The code that the pages Generation and Fill in the blank offer: executed, it writes and finds what is on the page."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoints import folders
from tests.recorded_code import EXAMPLE, named
from vizformer.analysis.causes.prompt_sets import bundled_set, bundled_sets
from vizformer.web.catalogue import sources
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.generation_settings import Settings
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages import blanks as gap_code
from vizformer.web.pages.generation import computations
from vizformer.web.pages.what_if import between_prompts, set_of_prompts
from vizformer.web.pages.what_if.prompts import Asked, Prompts
from vizformer.web.widgets import in_python as opening

STORIES = Subject(ModelRef("bundled", "stories"), "Once upon a time", "")
SAMPLING = Settings(strategy="sampling", new=6, temperature=0.7, top_k=9, seed=3)


def run(code: str) -> dict[str, Any]:
    exec(code, space := {})
    return space


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("subject", "settings", "branch"),
    [
        (STORIES, Settings(new=6, penalty=1.2), ""),
        (STORIES, SAMPLING, "2.40"),
        (Subject(ModelRef("bundled", "zh-en"), "我有一只猫。", "I"), Settings(new=6), ""),
        (Subject(ModelRef("bundled", "zh-en"), "我有一只猫。", "", "encoder.0.self.q@0,0,0=2"), Settings(new=6), ""),
    ],
)
def test_the_code_of_a_text_writes_the_text_of_the_page(subject: Subject, settings: Settings, branch: str) -> None:
    (code,) = computations.of_text(subject, settings, branch).values()
    assert tuple(run(code)["ids"]) == tuple(computations.text(subject, settings, branch).steps.ids)


def test_the_code_of_a_beam_search_finds_what_the_page_shows() -> None:
    settings = Settings(strategy="beam", new=5, width=2)
    (code,) = computations.of_beam(STORIES, settings).values()
    assert [text for text, __ in run(code)["found"]] == [
        text for text, __ in computations.beam(STORIES, settings).found
    ]


def test_the_code_of_a_gap_finds_the_words_of_the_page() -> None:
    subject = Subject(ModelRef("bundled", "cloze"), "She opened the door.", "")
    (code,) = gap_code.code_of_gap(subject, (2, 4), 4).values()
    found = [(one.token.id, one.probability) for one in run(code)["best"]]
    assert found == [(one.token.id, one.probability) for one in gap_code.predictions(subject, (2, 4), 4)]


def test_the_code_of_a_model_of_ones_own_code_imports_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file := tmp_path / "my_model.py").write_text(EXAMPLE, encoding="utf-8")
    with named(monkeypatch, file):
        monkeypatch.syspath_prepend(tmp_path)
        subject = Subject(ModelRef("code", "my_model"), "A bird", "")
        other = replace(subject, text="A bit.")
        (text,) = computations.of_text(subject, Settings(new=3), "").values()
        assert len(run(text)["ids"]) == 3
        (beam,) = computations.of_beam(subject, Settings(strategy="beam", new=2, width=2)).values()
        assert run(beam)["found"]
        prompts = Prompts(subject, other, row=5, answer=1, other=2)
        place = run("\n".join(between_prompts.code(prompts, Asked("heads", "decoder", 1), (1, 0))))
        assert place["found"].recovered.shape
        over = set_of_prompts.code(subject, bundled_set(bundled_sets()[0]), "patching", None)
        assert "from my_model import load" in over


def of_folder(make: Callable[..., Path], folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Subject:
    """A model of the server's folder, whose code opens it there."""
    pytest.importorskip("transformers")
    monkeypatch.setenv("VIZFORMER_MODELS", str(folder))
    monkeypatch.setattr(opening, "ELSEWHERE", str(make(folder / make.__name__)))
    (model,) = (one for one in sources.SOURCES["models"].listed() if one.name == make.__name__)
    return Subject(model, text, "")


def gpt2_with_habits(folder: Path) -> Path:
    """Its generation_config.json asks for what the page does not do."""
    made = folders.gpt2(folder)
    habits = {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2, "min_length": 9}
    (made / "generation_config.json").write_text(json.dumps(habits))
    return made


@pytest.mark.sample(1)
@pytest.mark.parametrize(("make", "new"), [(folders.gpt2, 7), (gpt2_with_habits, 200)])
def test_transformers_writes_the_same_text(
    make: Callable[..., Path], new: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = of_folder(make, tmp_path, monkeypatch, "the cat")
    found = computations.of_text(subject, Settings(new=new), "")
    assert set(found) == {"vizformer", "transformers"}
    assert tuple(run(found["transformers"])["ids"]) == tuple(
        computations.text(subject, Settings(new=new), "").steps.ids
    )
    assert set(computations.of_text(subject, SAMPLING, "")) == {"vizformer"}


def test_transformers_finds_the_same_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = of_folder(folders.bert, tmp_path, monkeypatch, "the cat sat")
    best = run(gap_code.code_of_gap(subject, (2,), 2)["transformers"])["best"]
    wanted = gap_code.predictions(subject, (2,), 2)
    assert best.indices.tolist() == [one.token.id for one in wanted]
    assert best.values.tolist() == pytest.approx([one.probability for one in wanted], abs=1e-5)
