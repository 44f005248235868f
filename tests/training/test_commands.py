"""`vizformer train` and `vizformer evaluate`, on the recipe at the size of a toy."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.training.test_translation import RECIPE, data
from vizformer.checkpoints import load
from vizformer.cli import main
from vizformer.training import commands

__all__ = ["data"]  # the fixture


def run(*arguments: object) -> str:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.slow
def test_train_then_evaluate_writes_model_notes_and_card(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "ZH_EN", RECIPE)
    out, work = tmp_path / "toy", tmp_path / "work"
    output = run("train", "zh-en", "--data", data, "--out", out, "--work", work, "--threads", 1)
    assert "epoch 2/2" in output
    notes = json.loads((out / "training.json").read_text(encoding="utf-8"))
    assert (notes["epochs"], notes["data"], notes["recipe"]["name"]) == (2, data.name, "toy")
    again = run("train", "zh-en", "--data", data, "--out", tmp_path / "again", "--work", work)
    assert "epoch" not in again  # finished already: only written out again
    assert load(tmp_path / "again").model.config == load(out).model.config
    (out / "alignment.tsv").write_text("猫\tcat\tcat=猫\n", encoding="utf-8")
    results = json.loads(run("evaluate", out, "--data", data).splitlines()[-1])
    assert {"bleu", "chrf", "pairs", "alignment"} <= results.keys()
    assert results["alignment"]["words"] == 1
    card = (out / "README.md").read_text(encoding="utf-8")
    assert f"**BLEU {results['bleu']}**" in card
    assert f"vizformer evaluate toy --data {data.name}" in card
    assert "1 content words" in card


def test_a_missing_file_is_one_line() -> None:
    result = CliRunner().invoke(main, ["train", "zh-en", "--data", "nowhere.txt"])
    assert result.exit_code == 1
    assert result.output.splitlines()[-1].startswith("Error: There is no file or folder nowhere.txt.")
