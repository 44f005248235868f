"""Encoders of many families, and decoders of BERT's layers, against `transformers`."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests import tiny
from tests.checkpoints import folders
from tests.greedy import greedy_steps
from tests.parity.against_transformers import opened_and_same, same_numbers, theirs
from vizformer.checkpoints import Opened, load, save
from vizformer.errors import CheckpointError
from vizformer.model.positions import sinusoidal_encoding

MPNET = "VIZFORMER_TEST_MPNET"  # names a folder
BERT = dict(
    hidden_size=16, num_hidden_layers=3, num_attention_heads=4, intermediate_size=24, max_position_embeddings=64
)
WIDE = {**BERT, "hidden_size": 32}  # rotary positions need an even number in each head
ROBERTA = dict(BERT, max_position_embeddings=66, type_vocab_size=1)
V3 = dict(  # as it is published, with distances that a short text goes beyond
    BERT,
    relative_attention=True,
    pos_att_type="p2c|c2p",
    position_buckets=8,
    max_relative_positions=20,
    norm_rel_ebd="layer_norm",
    share_att_key=True,
    position_biased_input=False,
)
# model_type -> the name of its classes, the sizes of a small one, whether its marks are RoBERTa's.
KINDS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "ernie": ("Ernie", BERT, False),
    "big_bird": ("BigBird", dict(BERT, attention_type="original_full"), False),
    "megatron-bert": ("MegatronBert", BERT, False),
    "electra": ("Electra", dict(BERT, embedding_size=16), False),
    "albert": ("Albert", dict(BERT, embedding_size=6), False),
    "roformer": ("RoFormer", WIDE, False),
    "nomic_bert": ("NomicBert", dict(WIDE, head_dim=8), False),
    "eurobert": ("EuroBert", dict(WIDE, num_key_value_heads=2), False),
    "modernbert": (
        "ModernBert",
        dict(WIDE, local_attention=6, layer_types=["full_attention", "sliding_attention", "full_attention"]),
        False,
    ),
    "deberta-v2": ("DebertaV2", V3, False),
    "deberta": ("Deberta", dict(BERT, relative_attention=True, pos_att_type=["c2p", "p2c"]), False),
    "mpnet": ("MPNet", dict(BERT, max_position_embeddings=66), True),
    "longformer": ("Longformer", dict(ROBERTA, attention_window=4), True),
    "data2vec-text": ("Data2VecText", ROBERTA, True),
    "roberta-prelayernorm": ("RobertaPreLayerNorm", ROBERTA, True),
    "xlm-roberta-xl": ("XLMRobertaXL", ROBERTA, True),
    "bert-generation": ("BertGeneration", BERT, False),
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
    if kind == "roformer":  # its waves were randomised too
        stored = folders.tensors(folder)
        for tensor in [tensor for tensor in stored if "embed_positions" in tensor]:
            stored[tensor] = sinusoidal_encoding(*stored[tensor].shape, "halves")
        folders.save_tensors(folder, stored)
    return folder


MODELS = {kind: "Decoder" if kind == "bert-generation" else "ForMaskedLM" for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sample(5)
def test_encoders(kind: str, tmp_path: Path) -> None:
    opened = opened_and_same(written(kind, tmp_path, model=MODELS[kind]), f"{KINDS[kind][0]}{MODELS[kind]}")
    assert isinstance(opened, Opened)
    assert opened.model.config.architecture == "encoder-only"
    assert opened.report.has_head
    # its waves; its summary of the first token; of tokens that see the whole text
    more = {"roformer": {"unused"}, "big_bird": {"unused"}, "longformer": {"unused"}}
    assert {tensor.fate for tensor in opened.report.tensors} == {"used"} | more.get(kind, set())


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", KINDS)
def test_bodies_without_a_head(kind: str, tmp_path: Path) -> None:
    model = "Encoder" if kind == "bert-generation" else "Model"
    opened = opened_and_same(written(kind, tmp_path, model=model), f"{KINDS[kind][0]}{model}")
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
    *((kind, dict(tie_word_embeddings=False)) for kind in KINDS if kind not in ("eurobert", "bert-generation")),
    ("eurobert", dict(tie_word_embeddings=True, attention_bias=True)),
    ("electra", dict(embedding_size=6)),
    ("electra", dict(embedding_size=6, tie_word_embeddings=False)),
    ("albert", dict(embedding_size=16, hidden_act="relu")),
    ("albert", dict(num_hidden_layers=1)),
    ("modernbert", dict(local_attention=3, layer_types=["sliding_attention"] * 3, attention_bias=True)),
    ("modernbert", dict(local_attention=128, layer_types=None, mlp_bias=True, hidden_activation="gelu")),
    (
        "modernbert",
        dict(rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 50.0}}, layer_types=None),
    ),
    ("longformer", dict(attention_window=[6] * 3, layer_norm_eps=1e-2)),
    ("longformer", dict(attention_window=128)),
    ("eurobert", dict(mlp_bias=True, num_key_value_heads=4)),
    ("big_bird", dict(rescale_embeddings=True, hidden_act="relu")),
    ("nomic_bert", dict(rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 77.0}, hidden_act="gelu")),
    ("megatron-bert", dict(hidden_act="relu", layer_norm_eps=1e-2)),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("kind", "changes"), VARIANTS, ids=str)
def test_variants(kind: str, changes: dict[str, Any], tmp_path: Path) -> None:
    opened_and_same(written(kind, tmp_path, **changes), f"{KINDS[kind][0]}ForMaskedLM")


def test_width_of_heads_that_nomic_berts_file_leaves_out(tmp_path: Path) -> None:
    """It follows from the sizes of the file, not from those of the published model."""
    folder = folders.change(written("nomic_bert", tmp_path), head_dim=...)
    assert opened_and_same(folder, "NomicBertForMaskedLM").model.config.d_head == 8


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


def test_short_texts_of_big_bird_are_looked_at_in_full_whatever_it_says(tmp_path: Path) -> None:
    folder = written("big_bird", tmp_path, attention_type="block_sparse", block_size=8)
    opened, other = load(folder), theirs(folder, "BigBirdForMaskedLM")
    ids = [token.id for token in opened.encode(folders.TEXTS[0])]
    with torch.no_grad():  # (its maps are not given out in this case)
        tiny.assert_close(opened.trace(folders.TEXTS[0]).logits, other(torch.tensor([ids])).logits[0])


DECODERS = {
    "ernie": "ForCausalLM",
    "big_bird": "ForCausalLM",
    "megatron-bert": "ForCausalLM",
    "electra": "ForCausalLM",
    "roformer": "ForCausalLM",
    "data2vec-text": "ForCausalLM",
    "roberta-prelayernorm": "ForCausalLM",
    "xlm-roberta-xl": "ForCausalLM",
    "bert-generation": "Decoder",
}


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
    folder = written(kind, tmp_path, model=DECODERS[kind], is_decoder=True)
    opened_as_a_decoder(folder, f"{KINDS[kind][0]}{DECODERS[kind]}")


@pytest.mark.parametrize(("family", "model"), [("bert", "BertLMHeadModel"), ("roberta", "RobertaForCausalLM")])
def test_bert_and_roberta_as_decoders(family: str, model: str, tmp_path: Path) -> None:
    opened_as_a_decoder(folders.FAMILIES[family](tmp_path, model=model, is_decoder=True), model)


def test_the_discriminator_of_electra_is_a_body(tmp_path: Path) -> None:
    folder = written("electra", tmp_path, model="ForPreTraining")
    opened = load(folder)
    assert not opened.report.has_head
    assert any("tells replaced tokens" in str(tensor.note) for tensor in opened.report.with_fate("unused"))
    same_numbers(opened, theirs(folder, "ElectraModel"))


def test_narrow_embeddings_without_a_head(tmp_path: Path) -> None:
    """As the small ELECTRA is published: nothing says how the last row is compared with rows of another width."""
    folder = written("electra", tmp_path, model="ForPreTraining", embedding_size=6)
    opened = load(folder)
    assert not opened.report.has_head
    assert any("all logits are 0" in str(note) for note in opened.report.assumptions)
    assert not opened.trace("a b").logits.any()
    same_numbers(opened, theirs(folder, "ElectraModel"))


@pytest.mark.sweep
def test_the_layers_of_albert_are_held_once(tmp_path: Path) -> None:
    opened = load(written("albert", tmp_path / "theirs"))
    held = {layer.self_attention.W_Q.weight.data_ptr() for layer in opened.model.encoder.layers}
    assert (len(held), len(opened.model.encoder.layers)) == (1, 3)
    assert any("all 3 layers have the same weights" in str(note) for note in opened.report.assumptions)
    save(opened, tmp_path / "ours", torch.float32)
    again = load(tmp_path / "ours")
    assert torch.equal(again.trace("a b").logits, opened.trace("a b").logits)


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        ("electra", dict(embedding_size=0), "embedding_size=0: it must be a whole number"),
        ("albert", dict(num_hidden_groups=2), "num_hidden_groups=2: supported is 1"),
        ("albert", dict(inner_group_num=2), "inner_group_num=2: supported is 1"),
        ("roformer", dict(embedding_size=8), "embedding_size=8: supported are embeddings as wide as hidden_size=32"),
        ("roformer", dict(rotary_value=True), "rotary_value=true: supported is false"),
        ("ernie", dict(use_task_id=True), "use_task_id=true: supported is false"),
        (
            "big_bird",
            dict(attention_type="block_sparse", block_size=2),
            "texts of more than 22 tokens are looked at in",
        ),
        ("big_bird", dict(use_bias=False), "use_bias=false: supported is true"),
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


OLD_NOMIC = {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "intermediate_size": "n_inner"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict(OLD_NOMIC), "n_embd=32: `transformers` reads hidden_size instead"),
        ({"hidden_size": "", "rotary_emb_base": 500}, "rotary_emb_base=500: `transformers` reads rope_theta instead"),
        ({"hidden_size": "", "rotary_emb_fraction": 0.5}, "rotary_emb_fraction=0.5: supported is null / 1"),
        ({"hidden_size": "", "prenorm": True}, "prenorm=true: supported is null / false"),
        ({"hidden_size": "", "qkv_proj_bias": True}, "qkv_proj_bias=true: supported is null / false"),
        ({"hidden_size": "", "rotary_scaling_factor": 2}, "rotary_scaling_factor=2: supported is null"),
    ],
    ids=str,
)
def test_files_for_the_authors_own_code_of_nomic_bert_are_refused_by_their_names(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """`transformers` reads none of these names: it would take its own defaults instead."""
    folder = written("nomic_bert", tmp_path)
    raw = json.loads((folder / "config.json").read_text())
    renamed = {name: raw[first] for first, name in changes.items() if first in raw and name}
    others = {name: value for name, value in changes.items() if name not in raw}
    gone = dict.fromkeys([name for name in (*changes, "rope_parameters") if name in raw], ...)
    with pytest.raises(CheckpointError, match=said):
        load(folders.change(folder, **{**gone, **renamed, **others}))


def test_a_nomic_bert_by_older_names_that_say_the_defaults_is_not_kept_from_opening(tmp_path: Path) -> None:
    """Its sizes are then those of the defaults, which is what is told where the tensors are others."""
    folder = folders.change(written("nomic_bert", tmp_path), hidden_size=..., n_embd=768, rotary_emb_base=1000)
    with pytest.raises(CheckpointError, match=r"does not fit config\.json") as caught:
        load(folder)
    assert "n_embd" not in str(caught.value)
