"""Encoders of many families, and decoders of BERT's layers, against `transformers`."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.checkpoints import folders
from tests.greedy import greedy_steps
from tests.parity.against_transformers import opened_and_same, same_numbers, theirs
from vizformer.checkpoints import Opened, load
from vizformer.errors import CheckpointError

MPNET = "VIZFORMER_TEST_MPNET"  # names a folder
BERT = folders.ENCODER
ROBERTA = dict(BERT, max_position_embeddings=66, type_vocab_size=1)
# model_type -> the name of its classes, the sizes of a small one, whether its marks are RoBERTa's.
KINDS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "ernie": ("Ernie", BERT, False),
    "megatron-bert": ("MegatronBert", BERT, False),
    "mpnet": ("MPNet", dict(BERT, max_position_embeddings=66), True),
    "longformer": ("Longformer", dict(ROBERTA, attention_window=4), True),
    "data2vec-text": ("Data2VecText", ROBERTA, True),
    "roberta-prelayernorm": ("RobertaPreLayerNorm", ROBERTA, True),
    "xlm-roberta-xl": ("XLMRobertaXL", ROBERTA, True),
}


def written(kind: str, folder: Path, *, model: str = "ForMaskedLM", **changes: Any) -> Path:
    """A tiny folder of a family."""
    name, options, roberta = KINDS[kind]
    if roberta:
        folders.write_byte_level(folder, {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4})
        marks = dict(bos_token_id=0, pad_token_id=1, eos_token_id=2)
    else:
        folders.write_wordpiece(folder)
        words = (folder / "vocab.txt").read_text().split("\n")
        marks = dict(bos_token_id=words.index("[CLS]"), eos_token_id=words.index("[SEP]"), pad_token_id=0)
    tokenizer = __import__("transformers").AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
    options = {**options, **marks, "vocab_size": folders.vocabulary(folder)}
    folders.written(folder, f"{name}Config", f"{name}{model}", options, changes)
    return folder


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sample(5)
def test_encoders(kind: str, tmp_path: Path) -> None:
    opened = opened_and_same(written(kind, tmp_path), f"{KINDS[kind][0]}ForMaskedLM")
    assert isinstance(opened, Opened)
    assert opened.model.config.architecture == "encoder-only"
    assert opened.report.has_head
    more = {"unused"} if kind == "longformer" else set()  # of tokens that see the whole text
    assert {tensor.fate for tensor in opened.report.tensors} == {"used"} | more


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", KINDS)
def test_bodies_without_a_head(kind: str, tmp_path: Path) -> None:
    opened = opened_and_same(written(kind, tmp_path, model="Model"), f"{KINDS[kind][0]}Model")
    assert isinstance(opened, Opened)
    assert not opened.report.has_head


def test_a_body_under_the_name_of_a_class_with_a_head(tmp_path: Path) -> None:
    """As all-mpnet-base-v2 is published; `transformers` would make a head of random numbers."""
    folder = written("mpnet", tmp_path)
    stored = folders.tensors(folder)
    folders.save_tensors(folder, {name: tensor for name, tensor in stored.items() if not name.startswith("lm_head.")})
    opened = opened_and_same(folder, "MPNetModel")
    assert isinstance(opened, Opened)
    assert not opened.report.has_head
    assert any("MPNetForMaskedLM" in str(said) for said in opened.report.assumptions)


@pytest.mark.skipif(not os.environ.get(MPNET), reason=f"needs the folder of all-mpnet-base-v2 in {MPNET}")
def test_all_mpnet_base_v2() -> None:
    """110 million real numbers: the same as in `transformers`, and the similarities of the pairs of its model card."""
    folder = Path(os.environ[MPNET])
    opened = opened_and_same(folder, "MPNetModel")
    theirs = __import__("transformers").MPNetModel.from_pretrained(folder).eval()
    first, found = "That is a happy person", []
    for second in ("That is a happy dog", "That is a very happy person", "Today is a sunny day"):
        vectors = []
        for text in (first, second):
            ids = torch.tensor([[token.id for token in opened.encode(text)]])
            with torch.no_grad():
                vectors.append(theirs(ids).last_hidden_state[0].mean(0))
        means = (opened.trace(text).residual("encoder.final").double().mean(0) for text in (first, second))
        found.append(float(torch.cosine_similarity(*means, dim=0)))
        assert found[-1] == pytest.approx(float(torch.cosine_similarity(*vectors, dim=0)), abs=1e-5)
    assert found == pytest.approx([0.764, 0.967, 0.315], abs=1e-3)


VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((kind, dict(tie_word_embeddings=False)) for kind in KINDS),
    ("longformer", dict(attention_window=[6] * 3, layer_norm_eps=1e-2)),
    ("longformer", dict(attention_window=128)),
    ("megatron-bert", dict(hidden_act="relu", layer_norm_eps=1e-2)),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("kind", "changes"), VARIANTS, ids=str)
def test_variants(kind: str, changes: dict[str, Any], tmp_path: Path) -> None:
    opened_and_same(written(kind, tmp_path, **changes), f"{KINDS[kind][0]}ForMaskedLM")


def test_longformer_says_that_no_token_sees_the_whole_text_only_where_it_is_so(tmp_path: Path) -> None:
    for window, narrow in ((4, True), (128, False)):
        opened = load(written("longformer", tmp_path / str(window), attention_window=window))
        assert (opened.model.config.sliding_window is not None) is narrow
        assert any("no token sees the whole text" in str(note) for note in opened.report.assumptions) is narrow


@pytest.mark.parametrize(
    "window", [[], [4, 4, 6], [4, 4], [-4] * 3, [2.0**70] * 3, 5, 0, -2, True, "4", None, {"4": 4}]
)
def test_windows_of_longformer_that_are_refused(window: Any, tmp_path: Path) -> None:
    folder = folders.change(written("longformer", tmp_path), attention_window=window)
    with pytest.raises(CheckpointError, match=r"attention_window=.*: supported is one even number from 4 on"):
        load(folder)


DECODERS = ("ernie", "megatron-bert", "data2vec-text", "roberta-prelayernorm", "xlm-roberta-xl")


def opened_as_a_decoder(folder: Path, model: str) -> None:
    """All numbers, and 20 greedy tokens with cache.

    Positions of RoBERTa's kind are counted from the padding's row by the model itself; `generate` of `transformers`
    counts them from 0 instead, so that the model is asked token by token.
    """
    opened, other = load(folder), theirs(folder, model)
    assert opened.model.config.architecture == "decoder-only"
    for text in folders.TEXTS[:3]:
        same_numbers(opened, other, text)
    prompt = [token.id for token in opened.encode(folders.TEXTS[0])]
    expected, given, past = [], prompt, None
    for _ in range(20):
        with torch.no_grad():
            made = other(torch.tensor([given]), past_key_values=past, use_cache=True)
        past, given = made.past_key_values, [int(made.logits[0, -1].argmax())]
        expected += given
    found = [step.id for step in greedy_steps(opened.model, prompt, max_new=20)]
    assert found == expected[: len(found)]
    assert len(found) == 20 or found[-1] == opened.model.config.eos_id


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", DECODERS)
def test_the_same_layers_as_a_decoder(kind: str, tmp_path: Path) -> None:
    folder = written(kind, tmp_path, model="ForCausalLM", is_decoder=True)
    opened_as_a_decoder(folder, f"{KINDS[kind][0]}ForCausalLM")


@pytest.mark.parametrize(("family", "model"), [("bert", "BertLMHeadModel"), ("roberta", "RobertaForCausalLM")])
def test_bert_and_roberta_as_decoders(family: str, model: str, tmp_path: Path) -> None:
    opened_as_a_decoder(folders.FAMILIES[family](tmp_path, model=model, is_decoder=True), model)


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        ("ernie", dict(use_task_id=True), "use_task_id=true: supported is false"),
        ("ernie", dict(add_cross_attention=True), "add_cross_attention=true: this is not supported"),
        ("ernie", dict(is_decoder=True, is_causal=False), "is_causal=false: supported is null / true"),
        ("ernie", dict(is_decoder="yes"), 'is_decoder="yes": it must be true or false'),
    ],
    ids=str,
)
def test_what_is_not_followed_is_refused_by_name(kind: str, changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    folder = folders.change(written(kind, tmp_path), **changes)
    with pytest.raises(CheckpointError, match=said):
        load(folder)
