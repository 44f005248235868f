"""`vizformer inspect`: the report in plain words."""

from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("transformers")

from tests import tiny
from tests.checkpoints import folders
from vizformer import cli
from vizformer.checkpoints import save


def said(path: Path, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.main, ["inspect", str(path), *options])
    return result.exit_code, result.output


def test_a_folder_in_their_layout(tmp_path: Path) -> None:
    code, text = said(folders.bert(tmp_path / "mine", model="BertForPreTraining"))
    assert code == 0
    for part in (
        "mine: a BERT model (encoder-only, written as BertForPreTraining; Hugging Face layout)",
        "width       16 (feed-forward 24, plain, gelu)", "vocabulary", "stored as   float32", "attention",
        "unused: bert.pooler.dense.bias [16] float32 (the summary of the first token, used by classifiers only)",
    ):  # fmt: skip
        assert part in text
    assert "used: bert.embeddings" not in text
    assert "used: bert.embeddings.word_embeddings.weight [" in said(tmp_path / "mine", "--tensors")[1]


def test_our_own_format(tmp_path: Path) -> None:
    save(tiny.checkpoint(), tmp_path / "ours")
    code, text = said(tmp_path / "ours")
    assert code == 0
    assert "ours: a VizFormer model (encoder-decoder; VizFormer's own format)" in text


def test_tensors_that_do_not_fit_are_listed(tmp_path: Path) -> None:
    folder = folders.gpt2(tmp_path / "mine")
    weights = folders.tensors(folder)
    del weights["transformer.ln_f.bias"]
    folders.save_tensors(folder, weights)
    code, text = said(folder)
    assert code == 1
    assert "missing: ln_f.bias [16] -> decoder.final_norm.bias" in text
    assert 'Problems: it does not open:\n  - "ln_f.bias" is missing' in text


def test_nothing_to_report_on(tmp_path: Path) -> None:
    code, text = said(tmp_path)
    assert code == 1
    assert text.startswith("Error: ")
    assert "lacks config.json" in text
