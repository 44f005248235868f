"""The commands that train and measure the bundled models, on the recipe at the size of a toy."""

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from recipes.bundled_models import evaluate, train
from recipes.bundled_models.attention_measures import measure_alignment
from tests.bundled import load as load_bundled
from tests.recipes.test_translation import RECIPE, data
from vizformer.analysis import alignment_score, read_alignments
from vizformer.assets import asset
from vizformer.checkpoints import load

__all__ = ["data"]  # the fixture


def run(command: click.Command, *arguments: object) -> str:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.slow
@pytest.mark.sweep
def test_train_then_evaluate_writes_model_notes_and_card(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (train, evaluate):
        monkeypatch.setattr(module, "ZH_EN", RECIPE)
    out, work = tmp_path / "toy", tmp_path / "work"
    output = run(train.main, "zh-en", "--data", data, "--out", out, "--work", work, "--threads", 1)
    assert "epoch 2/2" in output
    notes = json.loads((out / "training.json").read_text(encoding="utf-8"))
    assert (notes["epochs"], notes["data"], notes["recipe"]["name"]) == (2, data.name, "toy")
    again = run(train.main, "zh-en", "--data", data, "--out", tmp_path / "again", "--work", work)
    assert "epoch" not in again  # finished already: only written out again
    assert load(tmp_path / "again").model.config == load(out).model.config
    (out / "alignment.tsv").write_text("猫\tcat\tcat=猫\n", encoding="utf-8")
    results = json.loads(run(evaluate.main, out, "--data", data).splitlines()[-1])
    assert {"bleu", "chrf", "pairs", "alignment"} <= results.keys()
    assert results["alignment"]["words"] == 1
    card = (out / "README.md").read_text(encoding="utf-8")
    assert f"**BLEU {results['bleu']}**" in card
    assert f"python -m recipes.bundled_models.evaluate toy --data {data.name}" in card
    assert "1 content words" in card


def test_a_missing_file_is_one_line() -> None:
    result = CliRunner().invoke(train.main, ["zh-en", "--data", "nowhere.txt"])
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
