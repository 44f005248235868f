"""`vizformer heads`: the table of a model's heads, also after the command was killed."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from vizformer import cli
from vizformer.analysis.corpus_heads import bundled_corpus

ROOT = Path(__file__).resolve().parents[2]


def heads(*arguments):
    return CliRunner().invoke(cli.main, ["heads", *map(str, arguments)])


def table(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.sweep
@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_table(tmp_path):
    killed, whole, work = tmp_path / "killed.csv", tmp_path / "whole.csv", tmp_path / "work"
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(passage.text for passage in bundled_corpus("zh").passages[:80]), encoding="utf-8")
    command = [sys.executable, "-m", "vizformer", "heads", "cloze", "--texts", str(texts), "--threads", "1"]
    command += ["--out", str(killed), "--work", str(work)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().strip() == "8 of 80 texts"
        process.kill()
    assert not killed.exists()
    went_on = heads("cloze", "--texts", texts, "--out", killed, "--work", work)
    assert went_on.exit_code == 0, went_on.output
    assert "8 of 80 texts" not in went_on.output.splitlines()[0]
    assert "32 heads, measured on 80 texts" in went_on.output
    at_once = heads("cloze", "--texts", texts, "--out", whole, "--work", tmp_path / "other")
    assert at_once.output.splitlines()[0] == "8 of 80 texts"
    assert killed.read_bytes() == whole.read_bytes()
    assert [(row["layer"], row["head"]) for row in table(whole)[:2]] == [("0", "0"), ("0", "1")]


@pytest.mark.sweep
def test_what_was_measured_before_is_not_measured_again(tmp_path):
    texts, work = tmp_path / "texts.txt", tmp_path / "work"
    texts.write_text("I have a cat.\nThe cats are here.\n", encoding="utf-8")
    first = heads("cloze", "--texts", texts, "--out", tmp_path / "a.csv", "--work", work)
    assert "2 of 2 texts" in first.output
    second = heads("cloze", "--texts", texts, "--out", tmp_path / "b.csv", "--work", work)
    assert "2 of 2 texts" not in second.output
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_bad_names_are_said_before_anything_is_measured(tmp_path):
    assert "none of the endings .csv, .parquet." in heads("cloze", "--out", tmp_path / "heads.xlsx").output
    missing = heads("cloze", "--texts", tmp_path / "none.txt")
    assert missing.exit_code == 1
    assert "There is no file" in missing.output
    assert "There is no model" in heads("no-such-model").output
