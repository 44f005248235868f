"""The commands that train and measure the bundled models, on the recipe at the size of a toy."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from recipes.bundled_models import evaluate, train, zh_en_measures
from recipes.bundled_models.attention_measures import measure_alignment
from recipes.translator import remake
from recipes.translator import train as training
from recipes.translator.training_set import of_grammar
from tests.bundled import load as load_bundled
from tests.recipes.test_translator_training import LINES
from tests.translation import everyday
from vizformer.analysis import alignment_score, read_alignments
from vizformer.assets import asset
from vizformer.checkpoints import load


def run(command: click.Command, *arguments: object) -> str:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.sweep
def test_train_then_evaluate_writes_model_notes_and_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {
        "train": LINES,
        "valid": LINES[:4],
        "test": LINES[:80],
        "held_out_nouns": list(of_grammar(0, 60, held_out=True)),
    }
    monkeypatch.setattr(remake, "build", lambda *_, **__: parts)
    for name, value in dict(SIZE="small", VOCABULARY=320, UPDATES=2).items():
        monkeypatch.setattr(remake, name, value)
    monkeypatch.setattr(training, "SLICE", 20)
    monkeypatch.setattr(zh_en_measures, "READ_BACK", 2)
    monkeypatch.setattr(zh_en_measures, "sentences", lambda way: everyday.sentences(way)[:5])
    out, work, dictionary = tmp_path / "toy", tmp_path / "work", tmp_path / "words.whl"
    dictionary.touch()
    asked = ("zh-en", "--data", tmp_path, "--dictionary", dictionary, "--work", work, "--threads", 1)
    assert '"updates": 2' in run(train.main, *asked, "--out", out)
    notes = json.loads((out / "training.json").read_text(encoding="utf-8"))
    assert (notes["updates"], notes["lines"]["tatoeba"]["zh-en"]) == (2, 4)
    assert "updates" not in run(
        train.main, *asked, "--out", tmp_path / "again"
    )  # finished already: only written out again
    assert load(tmp_path / "again").model.config == load(out).model.config
    (out / "alignment.tsv").write_text("我喝茶。\tI drink tea.\ttea=茶\n", encoding="utf-8")
    results = json.loads(run(evaluate.main, out, "--data", work / "set").splitlines()[-1])
    assert {"zh-en BLEU", "en-zh BLEU", "zh-en everyday", "senses", "en-zh beam BLEU", "alignment"} <= results.keys()
    assert {"zh-en read back BLEU", "en-zh read back everyday"} <= results.keys()
    card = (out / "README.md").read_text(encoding="utf-8")
    assert f"**{results['en-zh BLEU']}**" in card
    assert "python -m recipes.bundled_models.train toy --data DATA --dictionary" in card
    assert "1 content words" in card


def test_the_translator_asks_for_its_dictionary(tmp_path: Path) -> None:
    result = CliRunner().invoke(train.main, ["zh-en", "--data", str(tmp_path)])
    assert result.exit_code == 2
    assert "--dictionary FILE" in result.output


def test_a_missing_file_is_one_line() -> None:
    result = CliRunner().invoke(train.main, ["stories", "--data", "nowhere.txt"])
    assert result.exit_code == 1
    assert result.output.splitlines()[-1].startswith("Error: There is no file or folder nowhere.txt.")


@pytest.mark.sweep
def test_the_card_says_how_many_words_the_best_layer_found(tmp_path: Path) -> None:
    checkpoint = load_bundled("zh-en")
    assert measure_alignment(checkpoint, tmp_path) == {}
    lines = asset("models", "zh-en", "alignment.tsv").read_text(encoding="utf-8").splitlines()[:7]
    (tmp_path / "alignment.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    score = alignment_score(checkpoint, read_alignments(tmp_path / "alignment.tsv"))
    found = measure_alignment(checkpoint, tmp_path)["alignment"]
    assert (found["words"], found["layer"]) == (score.words, int(score.found.argmax()))
    assert found["found"] == score.found.max()
