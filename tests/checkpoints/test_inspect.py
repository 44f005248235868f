"""`vizformer inspect`: the report in plain words."""

from pathlib import Path
from typing import Any

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
        "width       16 (feed-forward 24, plain, gelu)",
        "vocabulary",
        "scripts     Latin ",
        "stored as   float32",
        "attention",
        "unused: bert.pooler.dense.bias [16] float32 (the pooler, a summary of the first token that only classifiers use)",
    ):
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


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (tiny.QWEN3, ["queries and keys are normalised"]),
        ({**tiny.LLAMA, "attention_bias": "qkv"}, ["queries, keys and values have biases, the output has none"]),
        (tiny.GEGLU, ["embeddings are multiplied by √d_model"]),
        (tiny.LLAMA3, ["slowed down for longer texts (llama3, factor 8)"]),
        (tiny.LLAMA, []),
        (
            tiny.MARIAN,
            [
                "multiplied by √d_model",
                "all sines come before",
                "a bias for every token",
                "padding token is never generated",
            ],
        ),
        (tiny.BART, ["encoder and decoder have a position table", "a bias for every token"]),
        (tiny.T5_1, ["dot products times 1, not divided by √d_head", "multiplied by 0.25 before the unembedding"]),
    ],
    ids=str,
)
def test_what_a_model_has_that_others_have_not(options: dict[str, Any], expected: list[str]) -> None:
    two = "encoder-decoder" if options.keys() & {"decoder_start_id"} else "decoder-only"
    found = [str(message) for message in tiny.config(two, **options).details()]
    assert len(found) == len(expected)
    assert all(part in text for part, text in zip(expected, found, strict=True))
