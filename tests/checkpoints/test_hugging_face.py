"""Folders in Hugging Face layout: every source of weights, every field, the report, and the way back."""

import json
import re
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

pytest.importorskip("transformers")

import vizformer as vf
from tests import tiny
from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same, same_tokens, theirs
from vizformer.checkpoints import RecordedCheckpoint, describe, inspect, load, save
from vizformer.checkpoints.hugging_face.families import BY_TYPE
from vizformer.checkpoints.hugging_face.fields import KNOWN, fields_of, unknown_fields
from vizformer.errors import CheckpointError, TokenizerError

IDS = [3, 7, 1, 22, 0, 9]
LM = {
    "gpt2": "GPT2LMHeadModel",
    "llama": "LlamaForCausalLM",
    "bert": "BertForMaskedLM",
    "distilbert": "DistilBertForMaskedLM",
    "roberta": "RobertaForMaskedLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "opt": "OPTForCausalLM",
    "marian": "MarianMTModel",
    "bart": "BartForConditionalGeneration",
    "t5": "T5ForConditionalGeneration",
    "t5_v1_1": "T5ForConditionalGeneration",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folders.gpt2(tmp_path / "mine")


def opened_model(path: Path) -> Any:
    import transformers

    return transformers.GPT2LMHeadModel.from_pretrained(path)


# --- sources --------------------------------------------------------------------------------------------------


def test_shards(folder: Path) -> None:
    whole = load(folder)
    opened_model(folder).save_pretrained(folder, max_shard_size="10KB")
    (folder / "model.safetensors").unlink()
    assert (folder / "model.safetensors.index.json").is_file()
    sharded = load(folder)
    assert len(sharded.report.files) > 2
    assert sharded.key == whole.key


@pytest.mark.parametrize("zipped", [True, False])
def test_pytorch_files(folder: Path, zipped: bool) -> None:
    whole, weights = load(folder), folders.tensors(folder)
    torch.save(weights, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    (folder / "model.safetensors").unlink()
    assert load(folder).key == whole.key


def test_a_program_in_a_pytorch_file_is_not_run(folder: Path, tmp_path: Path) -> None:
    touched = tmp_path / "touched"

    class Bomb:
        def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
            return Path.touch, (touched,)

    (folder / "model.safetensors").unlink()
    torch.save({"transformer.wte.weight": Bomb()}, folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"holds more than tensors \(.*ask its author for model.safetensors"):
        load(folder)
    assert not touched.exists()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_other_precisions_become_float32_unless_asked_for(folder: Path, dtype: torch.dtype) -> None:
    weights = {name: tensor.to(dtype) for name, tensor in folders.tensors(folder).items()}
    folders.save_tensors(folder, weights)
    checkpoint = load(folder)
    assert checkpoint.model.embedding.weight.dtype == torch.float32
    assert torch.equal(checkpoint.model.embedding.weight, weights["transformer.wte.weight"].float())
    kept = load(folder, dtype=dtype)
    assert kept.model.embedding.weight.dtype == dtype
    assert list(checkpoint.report.dtypes) == [str(dtype).removeprefix("torch.")]
    logits = kept.trace("The cats").logits
    tiny.assert_close(logits.float(), checkpoint.trace("The cats").logits, 0.1)


def test_tokenizer_json_is_preferred_and_neither_cuts_nor_fills(folder: Path) -> None:
    from transformers import AutoTokenizer

    AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    content = json.loads((folder / "tokenizer.json").read_text())
    content["truncation"] = {"max_length": 2, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    content["padding"] = {
        "strategy": {"Fixed": 9},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "!",
    }
    (folder / "tokenizer.json").write_text(json.dumps(content))
    for name in ("vocab.json", "merges.txt"):
        (folder / name).unlink(missing_ok=True)
    assert len(load(folder).encode(folders.TEXTS[0])) > 9
    assert len(load(folder).encode("x")) == 1
    same_tokens(folder, load(folder))


def test_a_snapshot_of_the_hub_cache(folder: Path, tmp_path: Path) -> None:
    """There the files are links into `blobs`, two folders up."""
    blobs, snapshot = tmp_path / "cache" / "blobs", tmp_path / "cache" / "snapshots" / "abc"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for number, file in enumerate(sorted(folder.iterdir())):
        file.rename(blobs / str(number))
        (snapshot / file.name).symlink_to(Path("..", "..", "blobs", str(number)))
    assert load(snapshot).trace("x").logits.isfinite().all()


def test_the_public_name_opens_it(folder: Path) -> None:
    assert vf.load(folder).name == "mine"


def test_a_folder_of_a_training_points_to_its_checkpoints(tmp_path: Path) -> None:
    for step in (500, 1000):
        folders.llama(tmp_path / "run" / f"checkpoint-{step}")
    said = "run holds no model itself, but those of a training: checkpoint-1000, checkpoint-500. Open .* run/checkpoint-1000"
    with pytest.raises(CheckpointError, match=said):
        load(tmp_path / "run")
    (tmp_path / "run" / "trainer_state.json").write_text("{}")
    with pytest.raises(CheckpointError, match=said):
        load(tmp_path / "run")
    assert load(tmp_path / "run" / "checkpoint-500").model.config.depth


def test_code_that_a_config_names_is_left_aside_with_a_note(tmp_path: Path) -> None:
    """As InternLM was published: `transformers` has its family itself."""
    folder = folders.llama(tmp_path)
    expected = load(folder).trace("The cats").logits
    folders.change(folder, auto_map={"AutoModelForCausalLM": "modeling_llama.LlamaForCausalLM"})
    (folder / "modeling_llama.py").write_text("raise SystemExit")
    ours = load(folder)
    assert torch.equal(ours.trace("The cats").logits, expected)
    (note,) = [str(said) for said in ours.report.assumptions if "auto_map" in str(said)]
    assert "modeling_llama.LlamaForCausalLM" in note
    assert 'VizFormer never runs it, and computes what `transformers` computes for "llama"' in note


def test_a_number_with_an_exponent_is_a_whole_number(tmp_path: Path) -> None:
    folder = folders.llama(tmp_path)
    text = (folder / "config.json").read_text()
    layers = re.search(r'"num_hidden_layers": (\d+)', text)
    assert layers is not None
    text = text.replace(layers[0], f'"num_hidden_layers": {layers[1]}e0')
    (folder / "config.json").write_text(
        re.sub(r'"max_position_embeddings": \d+', '"max_position_embeddings": 1e3', text)
    )
    config = load(folder).model.config
    assert (type(config.max_positions), config.max_positions, config.depth) == (int, 1000, int(layers[1]))
    folders.change(folder, max_position_embeddings=1000.5)
    with pytest.raises(CheckpointError, match=r"max_position_embeddings=1000\.5: it must be a whole number"):
        load(folder)


# --- what is refused ------------------------------------------------------------------------------------------

DAMAGED = r"computes NaN: its weights or its options are damaged\. Copy them again from their source\."
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("gpt2", dict(add_cross_attention=True), "add_cross_attention=true: this is not supported"),
    ("gpt2", dict(n_head=3), "d_model=16 is not divisible by n_heads=3"),
    ("gpt2", dict(n_layer="3", n_head=-1), 'n_layer="3": it must be a whole number.*n_head=-1|n_head=-1.*n_layer="3"'),
    ("gpt2", dict(quantization_config={"bits": 4}), r"quantization_config={.*}: the weights are quantised"),
    ("gpt2", dict(pruned_heads={"0": [1]}), "pruned_heads"),
    (
        "llama",
        dict(model_type="strange"),
        'model_type="strange", which is not supported. These families open: GPT-2, B',
    ),
    ("llama", dict(model_type=["gpt2"]), r'model_type=\["gpt2"\], which is not supported'),
    ("gpt2", dict(layer_norm_epsilon=float("nan")), "layer_norm_epsilon=NaN: it must be a number above 0"),
    ("gpt2", dict(n_positions=10**15), "n_positions=1000000000000000: it must be a whole number from 1"),
    ("gpt2", dict(n_layer=10**6), "1000000 layers, but the file of weights has only"),
    ("gpt2", dict(eos_token_id="</s>"), 'eos_token_id="</s>": it must be a token id, 0 to'),
    ("gpt2", dict(is_causal=False), "is_causal=false: queries of the decoder would see what comes after them"),
    ("gpt2", dict(per_layer_config={"0": {"n_head": 2}}), "per_layer_config=.*: layers with options of their own"),
    ("gpt2", dict(configuration_files=["config.4.0.0.json"]), "configuration_files=.*: it names other files that stan"),
    ("gpt2", dict(transformers_weights="b.safetensors"), "transformers_weights=.*: it names another file of weights"),
    ("llama", dict(rope_parameters={"rope_type": "ntk", "factor": 2.0}), "rope_parameters={.*}: rotary posit"),
    ("llama", dict(partial_rotary_factor=0.5), "partial_rotary_factor=0.5: supported is null / 1"),
    ("llama", dict(head_dim=0), "head_dim=0: it must be a whole number"),
    ("llama", dict(head_dim=5), "d_head=5 is odd"),
    ("qwen2", dict(layer_types=["chunked_attention"] * 3), "own code stopped .*attention_chunk_size"),
    ("qwen2", dict(layer_types="full_attention"), r"layer_types=.*: supported are full_attention and"),
    ("qwen2", dict(layer_types=["full_attention"] * 2), r"layer_types=.*: it must have an entry for each of the 3"),
    ("qwen3", dict(layer_types=["sliding_attention"] * 3), "own code stopped"),
    ("qwen3", dict(use_sliding_window=1), "use_sliding_window=1: it must be true or false"),
    ("qwen3", dict(use_sliding_window=True, layer_types=None, max_window_layers="1"), 'max_window_layers="1": it mus'),
    ("llama", dict(model_type="mistral", sliding_window=-3), "sliding_window=-3: it must be a whole number from 1"),
    ("llama", dict(model_type="mistral", sliding_window="9"), 'sliding_window="9": it must be a whole number from 1'),
    (
        "llama",
        dict(model_type="mistral", sliding_window=9, num_hidden_layers=2**31 - 1),
        "num_hidden_layers=2147483647: supported are at",
    ),
    ("llama", dict(num_key_value_heads=3), "n_heads=4 is not a multiple of n_kv_heads=3"),
    ("llama", dict(model_type="jetmoe"), 'model_type="jetmoe"\\. It opens: JetMoeForCausalLM'),
    ("llama", dict(model_type="gemma3"), "has no table text_config that describes the language model"),
    ("llama", dict(rope_parameters={"rope_type": "linear", "factor": 0}), DAMAGED),
    ("llama", dict(rope_parameters={"rope_type": "linear", "factor": 2, "x": 1}), "rope_parameters={.*}: rotary pos"),
    ("llama", dict(rope_parameters={"partial_rotary_factor": 0.5}), "partial_rotary_factor must be 1"),
    ("qwen3", dict(head_dim=7), "d_head=7 is odd"),
    ("opt", dict(do_layer_norm_before=0), "do_layer_norm_before=0: it must be true or false"),
    ("opt", dict(word_embed_proj_dim=0), "word_embed_proj_dim=0: supported is null / 16"),
    ("opt", dict(word_embed_proj_dim="8"), "word_embed_proj_dim=.8.: supported is null / 16"),
    ("opt", dict(layer_norm_elementwise_affine=False), "layer_norm_elementwise_affine=false: supported is true"),
    ("bert", dict(position_embedding_type="relative_key"), 'position_embedding_type="relative_key": this is not supp'),
    ("distilbert", dict(is_decoder=True), "is_decoder=true: this is not supported"),
    ("marian", dict(decoder_vocab_size=99), "decoder_vocab_size=99: supported is null / 3"),
    (
        "marian",
        dict(decoder_start_token_id=None, pad_token_id=None),
        "decoder_start_token_id=null: the start token of the decoder",
    ),
    ("marian", dict(normalize_embedding=True), "normalize_embedding=true: supported is null / false"),
    ("bart", dict(tie_word_embeddings=False), "tie_word_embeddings=false: supported is true"),
    ("bart", dict(is_encoder_decoder=False), "own code stopped"),
    ("bart", dict(normalize_before=True), "normalize_before=true: supported is null / false"),
    ("bart", dict(extra_pos_embeddings=0), "extra_pos_embeddings=0: supported is null / 2"),
    ("bart", dict(decoder_ffn_dim=48), "decoder_ffn_dim=48: supported is 24"),
    ("bart", dict(forced_bos_token_id=10**6), "forced_bos_token_id=1000000: it must be a token id"),
    ("t5", dict(is_encoder_decoder=False), "has other tokens than the layers before it"),
    ("t5", dict(relative_attention_num_buckets=7), "relative_buckets=7: must be even and at least 4"),
    ("t5", dict(d_kv="4"), 'd_kv="4": it must be a whole number'),
    ("roberta", dict(pad_token_id=None), "own code stopped"),
]


@pytest.mark.parametrize(("family", "fields", "said"), REFUSED, ids=lambda value: str(value)[:40])
@pytest.mark.sample(12)
def test_fields_that_change_the_arithmetic(family: str, fields: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=said) as caught:
        load(folders.change(folders.FAMILIES[family](tmp_path), **fields))
    assert re.search(r"config\.json|its own code", str(caught.value))


# What ours does not compute and the code of `transformers` does.
RECORDED: list[tuple[str, dict[str, Any], str]] = [
    ("gpt2", dict(scale_attn_by_inverse_layer_idx=True), "scale_attn_by_inverse_layer_idx=true: supported is false"),
    ("gpt2", dict(scale_attn_weights=False), "scale_attn_weights=false: supported is true"),
    ("gpt2", dict(activation_function="tanh"), 'activation_function="tanh": supported are relu, relu2, gelu,'),
    ("qwen2", dict(use_sliding_window=True, sliding_window=None), "sliding_window=null: it must be a whole number"),
    ("qwen3", dict(use_sliding_window=True, layer_types=None, max_window_layers=-1), "max_window_layers=-1: it must"),
    ("marian", dict(decoder_attention_heads=8), "decoder_attention_heads=8: supported is 4"),
    ("marian", dict(activation_function="tanh"), 'activation_function="tanh": supported are relu'),
    ("t5", dict(feed_forward_proj="swiglu"), 'feed_forward_proj="swiglu": supported are relu'),
    ("t5", dict(feed_forward_proj="gated-gelu"), "is_gated_act=false: supported is null / true"),
    ("t5", dict(dense_act_fn="silu"), 'dense_act_fn="silu": supported is null / "relu"'),
    ("roberta", dict(hidden_act="relu"), 'hidden_act="relu": supported is "gelu"'),
]


@pytest.mark.parametrize(("family", "fields", "said"), RECORDED, ids=lambda value: str(value)[:40])
@pytest.mark.sample(6)
@pytest.mark.filterwarnings("ignore")
def test_an_option_that_ours_does_not_have_is_computed_by_transformers(
    family: str, fields: dict[str, Any], said: str, tmp_path: Path
) -> None:
    folder = folders.change(folders.FAMILIES[family](tmp_path), **fields)
    opened = load(folder)
    assert isinstance(opened, RecordedCheckpoint)
    assert re.search(said, str(opened.report.assumptions[0]))
    ids = torch.tensor([IDS])
    given = {"decoder_input_ids": ids} if opened.shape.architecture == "encoder-decoder" else {}
    with torch.no_grad():
        logits = theirs(folder, opened.report.declared)(input_ids=ids, **given).logits[0]
    assert_close(opened.trace(ids=IDS, target_ids=IDS if given else None).logits, logits, rtol=0, atol=1e-5)


def test_an_option_that_transformers_passes_over_is_refused(tmp_path: Path) -> None:
    folder = folders.change(folders.llama(tmp_path), partial_rotary_factor=0.5)
    with pytest.raises(CheckpointError, match=r"LlamaForCausalLM, read \"partial_rotary_factor\""):
        load(folder)


def test_all_problems_of_a_config_at_once(folder: Path) -> None:
    folders.change(folder, scale_attn_weights=False, n_head=0, pruned_heads={"1": [0]}, tie_word_embeddings="yes")
    with pytest.raises(CheckpointError) as caught:
        load(folder)
    for field in ("scale_attn_weights", "n_head", "pruned_heads", "tie_word_embeddings"):
        assert field in str(caught.value)
    assert "Copy it again from the model's source, or take another model." in str(caught.value)


@pytest.mark.parametrize("kind", sorted(BY_TYPE))
def test_every_field_of_transformers_is_known(kind: str) -> None:
    """A field that a new version of `transformers` brings is looked at before it is believed harmless."""
    from transformers import AutoConfig

    raw = AutoConfig.for_model(kind).to_dict()
    fields = fields_of(raw)
    BY_TYPE[kind].config(fields, ())
    assert unknown_fields(raw, fields._read) == []
    # It opens with another value than the usual.
    usual = {}
    assert [problem.values["field"] for problem in fields.problems] == usual.get(kind, [])


@pytest.mark.parametrize("kind", sorted(BY_TYPE))
def test_defaults_and_second_names_of_fields_are_those_of_transformers(kind: str) -> None:
    """Where this fails, `python -m recipes.config_defaults` writes the file again; look at what it changes."""
    from recipes import config_defaults

    assert config_defaults.of_type(kind) == KNOWN[kind]


def test_defaults_are_there_of_what_opens_and_of_nothing_else() -> None:
    assert KNOWN.keys() == BY_TYPE.keys()


def test_fields_nobody_reads_and_fields_left_out_are_assumptions(folder: Path) -> None:
    folders.change(folder, my_notes="\x1b[31mhello", layer_norm_epsilon=...)
    said = [str(assumption) for assumption in load(folder).report.assumptions]
    assert any('field "my_notes"="\\u001b[31mhello" that `transformers` does not read' in line for line in said)
    assert any("does not say layer_norm_epsilon: taken as 1e-05" in line for line in said)


def test_marks_outside_the_vocabulary_are_left_out(folder: Path) -> None:
    """Whoever makes a GPT2Config with a smaller vocabulary has 50256 in it."""
    found = load(folders.change(folder, eos_token_id=50_256, bos_token_id=50_256))
    assert (found.model.config.bos_id, found.model.config.eos_id) == (None, None)
    said = [str(assumption) for assumption in found.report.assumptions]
    for name in ("bos_token_id", "eos_token_id"):
        assert any(f"{name}=50256 lies outside the vocabulary, 0 to " in line for line in said)
    assert len(found.generate("x", max_new=5).ids) == 5
    folders.change(folder, eos_token_id=...)  # then it is the default of `transformers`, which nobody wrote
    assert not any("eos_token_id=50256 lies outside" in str(a) for a in load(folder).report.assumptions)


@pytest.mark.parametrize("make", [folders.bert, folders.roberta])
def test_two_biases_of_a_head_that_is_not_tied(make: Callable[..., Path], tmp_path: Path) -> None:
    """That of the last linear layer is added, the other one by nobody; a file may have it by the other name alone."""
    folder = make(tmp_path, tie_word_embeddings=False)
    weights = folders.tensors(folder)
    added = next(name for name in weights if name.endswith("decoder.bias"))
    other = added.replace("decoder.bias", "bias")
    assert not torch.equal(weights[added], weights[other])
    kind = "Bert" if make is folders.bert else "Roberta"
    found = opened_and_same(folder, f"{kind}ForMaskedLM")
    fates = {tensor.name: tensor for tensor in found.report.tensors}
    assert (fates[added].fate, fates[other].fate) == ("used", "unused")
    assert "which the model does not add" in str(fates[other].note)
    weights[other] = weights.pop(added)
    folders.save_tensors(folder, weights)
    tiny.assert_close(load(folder).trace("x").logits, found.trace("x").logits, 0)


def test_what_bert_sets_between_two_sentences_is_its_tokenizers(tmp_path: Path) -> None:
    """eos_token_id says nothing of it: a token of that id would begin a second sentence."""
    folder = folders.change(folders.bert(tmp_path), eos_token_id=5)
    opened_and_same(folder, "BertForMaskedLM")
    assert load(folder).model.config.eos_id == load(folder).tokenizer.id_of("[SEP]")


# --- tensors that do not fit ----------------------------------------------------------------------------------


def test_the_fate_of_every_tensor(folder: Path) -> None:
    weights = folders.tensors(folder)
    del weights["transformer.h.1.ln_1.bias"]
    weights["transformer.h.0.mlp.c_fc.weight"] = weights["transformer.h.0.mlp.c_fc.weight"].T
    weights["transformer.h.2.attn.q_norm.weight"] = torch.ones(4)
    weights["transformer.wpe.weight"] = weights["transformer.wpe.weight"].to(torch.int8)
    weights["score.weight"] = torch.ones(2, 16)
    folders.save_tensors(folder, weights)
    with pytest.raises(CheckpointError) as caught:
        load(folder)
    for part in (
        "model.safetensors does not fit config.json",
        '"h.1.ln_1.bias" is missing',
        '"transformer.h.0.mlp.c_fc.weight" has shape [24, 16], but by config.json it must be [16, 24]',
        '"transformer.h.2.attn.q_norm.weight" belongs to no part of the model that config.json describes',
        '"transformer.wpe.weight" is stored as "i8"',
        "copy both again",
    ):
        assert part in str(caught.value)
    report = inspect(folder)
    fates = {tensor.name: tensor.fate for tensor in report.tensors}
    assert fates["h.1.ln_1.bias"] == "missing"
    assert fates["transformer.h.0.mlp.c_fc.weight"] == "wrong shape"
    assert fates["score.weight"] == "unused"
    assert fates["transformer.wte.weight"] == "used"
    assert len(report.problems) == 4
    assert "Problems: it does not open:" in describe(report)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_none(folder: Path, value: float) -> None:
    weights = folders.tensors(folder)
    weights["transformer.h.1.mlp.c_fc.bias"][3] = value
    folders.save_tensors(folder, weights)
    with pytest.raises(CheckpointError, match=r'"transformer.h.1.mlp.c_fc.bias" holds NaN or infinite numbers'):
        load(folder)
    assert "NaN" in str(inspect(folder).problems[0])


def test_a_tie_that_is_none(folder: Path) -> None:
    weights = folders.tensors(folder)
    folders.save_tensors(folder, {**weights, "lm_head.weight": weights["transformer.wte.weight"] + 1e-3})
    with pytest.raises(CheckpointError, match=r"should be the same numbers \(tie_word_embeddings\) and are not"):
        load(folder)


def test_more_layers_in_the_file_than_in_the_config(folder: Path) -> None:
    with pytest.raises(CheckpointError, match=r'h.2.attn.c_attn.bias" belongs to no part.*and 4 more'):
        load(folders.change(folder, n_layer=2))


# --- files that are not what they seem -------------------------------------------------------------------------

STAND_INS = [
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "is a Git LFS pointer.*git lfs pull"),
    (b"\n<!DOCTYPE html><html>Sign in", "is a web page, probably an error message.* sign in"),
    (b"", "cannot be|is not JSON"),
]


@pytest.mark.parametrize(("content", "said"), STAND_INS, ids=lambda value: str(value)[:12])
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.json"])
def test_stand_ins(folder: Path, name: str, content: bytes, said: str) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=f"^{name} .*({said})"):
        load(folder)


@pytest.mark.parametrize("place", ["../outside.safetensors", "/etc/passwd", "a/b.safetensors", "..", "", "c:\\x"])
def test_an_index_that_points_elsewhere(folder: Path, place: str) -> None:
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    places = {"transformer.wte.weight": place}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    with pytest.raises(
        CheckpointError, match=r"is not the name of a file in this folder. All files of a model must be"
    ):
        load(folder)


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ({}, "has no table `weight_map`"),
        ({"weight_map": {"a": 3}}, "has no table `weight_map`"),
        ({"weight_map": {"a": "nowhere.safetensors"}}, 'mine lacks "nowhere.safetensors"'),
        ({"weight_map": {"a": "part.safetensors"}}, '"a" is not in "part.safetensors".*is not listed.*and [0-9]+ more'),
        ([], "instead of a JSON object"),
    ],
    ids=str,
)
def test_an_index_that_does_not_fit(folder: Path, index: object, said: str) -> None:
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=said):
        load(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.json"])
def test_links_out_of_the_folder(folder: Path, name: str) -> None:
    (folder / name).rename(folder.parent / name)
    (folder / name).symlink_to(folder.parent / name)
    with pytest.raises(CheckpointError, match=f'"{name}" is a link that leads out of mine. Put the file itself there'):
        load(folder)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_what_is_no_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).symlink_to(folder / name)  # round and round
    with pytest.raises(CheckpointError, match="lacks"):
        load(folder)
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(CheckpointError, match="is not a file"):
        load(folder)


LYING = [
    struct.pack("<Q", 2**63) + b"{}",
    struct.pack("<Q", 10**9) + b"{}",
    struct.pack("<Q", 2) + b"[]",
    struct.pack("<Q", 100_000) + b"[" * 100_000,
    *(
        struct.pack("<Q", len(header)) + header + b"\0" * 64
        for header in (
            b'{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,64]}}',
            b'{"a":{"dtype":"F32","shape":[1000000],"data_offsets":[0,64]}}',
            b'{"a":{"dtype":"F32","shape":[16],"data_offsets":[0,6400000000]}}',
            b'{"a":{"dtype":"F32","shape":[16],"data_offsets":[-4,60]}}',
        )
    ),
]


@pytest.mark.parametrize("content", LYING, ids=lambda value: str(value[:60]))
def test_headers_that_lie(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model.safetensors cannot be read \(.+\). It is damaged or incomplete"):
        load(folder)


def test_a_compressed_pytorch_file(folder: Path) -> None:
    import zipfile

    (folder / "model.safetensors").unlink()
    with zipfile.ZipFile(folder / "pytorch_model.bin", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\0" * 10**7)
    with pytest.raises(CheckpointError, match=r'pytorch_model.bin was packed again.*"archive/data.pkl" is compressed'):
        load(folder)


@pytest.mark.parametrize(
    "content",
    [
        {"w": torch.ones(1).expand(10**6, 10**6)},
        {"w": torch.ones(3).to_sparse()},
        {"w": torch.empty(3, device="meta")},
        {"w": [1, 2]},
        {3: torch.ones(3)},
        [torch.ones(3)],
    ],
    ids=lambda value: str(value)[:30],
)
def test_pytorch_files_with_something_else(folder: Path, content: object) -> None:
    (folder / "model.safetensors").unlink()
    torch.save(content, folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"pytorch_model.bin (holds|contains|cannot be read)"):
        load(folder)


def test_other_formats_are_named(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model.Q4_K_M.gguf")
    for source in (folder, folder / "model.Q4_K_M.gguf"):
        with pytest.raises(CheckpointError, match=r'"model.Q4_K_M.gguf" is a GGUF file.*Open the original model'):
            load(source)
    (folder / "model.Q4_K_M.gguf").rename(folder / "tf_model.h5")
    for source in (folder, folder / "tf_model.h5"):
        with pytest.raises(CheckpointError, match=r'"tf_model.h5" is an HDF5 file of Keras or TensorFlow'):
            load(source)
    (folder / "tf_model.h5").unlink()
    with pytest.raises(CheckpointError, match=r"mine lacks model.safetensors"):
        load(folder)


# --- tokenizers that do not fit --------------------------------------------------------------------------------


def test_a_tokenizer_of_another_model(tmp_path: Path) -> None:
    folder = folders.llama(tmp_path)
    content = json.loads((folder / "tokenizer.json").read_text())
    content["added_tokens"].append(
        {
            "id": 999,
            "content": "<new>",
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
    )
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=r"token ids up to \d+ but config.json says vocab_size=340"):
        load(folder)


def test_a_tokenizer_that_adds_an_id_out_of_the_air(tmp_path: Path) -> None:
    folder = folders.llama(tmp_path)
    content = json.loads((folder / "tokenizer.json").read_text())
    content["post_processor"]["special_tokens"]["<s>"]["ids"] = [10**6]
    (folder / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=r"token ids up to 1000000 but config.json says vocab_size=340"):
        load(folder)


@pytest.mark.parametrize("id", [2**22, 2**31, 2**32 - 1])
def test_an_id_that_the_library_would_count_to(tmp_path: Path, id: int) -> None:
    """Of a token far behind the others: writing such a tokenizer would go through all ids before it (a minute)."""
    folder = folders.llama(tmp_path)
    content = json.loads((folder / "tokenizer.json").read_text())
    content["model"]["vocab"]["<0x14>"] = id
    (folder / "tokenizer.json").write_text(json.dumps(content))
    start = time.process_time()
    with pytest.raises(CheckpointError, match=r"tokenizer.json .* has the id [0-9,]+; they go up to 4,194,303 at most"):
        load(folder)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "content",
    ["{}", "[" * 100_000, '{"model": {"type": "BPE"}}', "\x00"],
    ids=lambda content: ascii(content[:9]),
)
def test_a_tokenizer_that_is_none(tmp_path: Path, content: str) -> None:
    folder = folders.llama(tmp_path)
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"tokenizer.json cannot be used as a tokenizer \(.+\). Copy it again"):
        load(folder)


TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt", "vocab.txt")


@pytest.mark.parametrize("family", ["gpt2", "bert", "llama", "marian"])
def test_without_any_file_of_a_tokenizer_token_ids_are_read(family: str, tmp_path: Path) -> None:
    folder = folders.FAMILIES[family](tmp_path / "mine")
    ids = [7, 8, 9, 12]  # (no mark of BERT among them, which the tokenizer alone knows)
    before = load(folder).trace(ids=ids, target_ids=[3, 5] if family == "marian" else None)
    for name in TOKENIZERS:
        (folder / name).unlink(missing_ok=True)
    found = load(folder)
    assert [token.id for token in found.encode("7 8, 9 12")] == ids
    tiny.assert_close(
        found.trace("7 8 9 12", target_ids=[3, 5] if family == "marian" else None).logits, before.logits, 0
    )
    last = found.tokenizer.vocab_size - 1
    said = f"there is no tokenizer: numbers separated by spaces are read as token ids, 0 to {last}"
    assert said in describe(inspect(folder))
    with pytest.raises(TokenizerError, match="came without a tokenizer: type token ids"):
        found.encode("The cats")
    save(found, tmp_path / "saved")
    assert [token.id for token in load(tmp_path / "saved").encode("7 3")] == [7, 3]
    (folder / "vocab.bpe").write_text("half of one")  # then there was one, and not all of it is there
    with pytest.raises(
        CheckpointError, match=r"mine lacks a tokenizer \(.+ or remove the remaining files of the tokenizer"
    ):
        load(folder)


def test_two_vocabularies_without_a_tokenizer(tmp_path: Path) -> None:
    folder = folders.marian(
        tmp_path,
        share_encoder_decoder_embeddings=False,
        decoder_vocab_size=17,
        tie_word_embeddings=False,
        pad_token_id=16,
        decoder_start_token_id=16,
    )
    for name in TOKENIZERS:
        (folder / name).unlink(missing_ok=True)
    found = load(folder)
    rows = found.model.config.source_vocab_size
    assert rows is not None
    assert rows > 17
    assert f"0 to {rows - 1} in the source and 0 to 16 in the target" in describe(found.report)
    assert found.trace(f"{rows - 1} 4", target="16 2").logits.shape == (3, 17)


def test_missing_tokenizers(tmp_path: Path) -> None:
    for family, file in (("gpt2", "merges.txt"), ("bert", "vocab.txt"), ("llama", "tokenizer.json")):
        folder = folders.FAMILIES[family](tmp_path / family)
        (folder / file).unlink()
        with pytest.raises(CheckpointError, match=rf"{family} lacks a tokenizer \(tokenizer.json"):
            load(folder)
    (folder / "tokenizer.model").write_bytes(b"spm")
    with pytest.raises(CheckpointError, match=r"tokenizer.model is no file of SentencePiece, or damaged"):
        load(folder)
    folder = folders.gpt2(tmp_path / "bpe")
    (folder / "merges.txt").rename(folder / "tokenizer.model")
    with pytest.raises(
        CheckpointError,
        match=r"has its tokenizer only as \"tokenizer.model\", which VizFormer does not read: it needs tok",
    ):
        load(folder)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("vocab.json", '{"a": "b"}', "an id is no whole number"),
        ("vocab.json", '{"a": 0}', "Token `.*` out of vocabulary"),
        ("merges.txt", "#version: 0.2\nno-pair\n", '"no-pair" is no pair'),
    ],
)
def test_vocabularies_that_do_not_fit(folder: Path, name: str, content: str, said: str) -> None:
    (folder / name).write_text(content)
    with pytest.raises(CheckpointError, match=said):
        load(folder)


def test_a_wordpiece_vocabulary_without_its_marks(tmp_path: Path) -> None:
    folder = folders.bert(tmp_path)
    (folder / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(CheckpointError, match=r'vocab.txt cannot be used .*it lacks "\[CLS\]", "\[SEP\]", "\[UNK\]"'):
        load(folder)


# --- the report and the way back --------------------------------------------------------------------------------


@pytest.mark.sweep
def test_the_report_counts_every_parameter_once(tmp_path: Path) -> None:
    for family, make in folders.FAMILIES.items():
        checkpoint = load(make(tmp_path / family))
        report = checkpoint.report
        assert report.n_parameters == sum(p.numel() for p in checkpoint.model.parameters())
        assert "other" not in report.parameters
        model = theirs(tmp_path / family, LM[family])
        skipped = {"roberta": 2 * 16, "opt": 2 * 16, "bart": 4 * 16}.get(family, 0)  # rows that no position uses
        biases = checkpoint.model.logit_bias  # a buffer there
        theirs_all = sum(
            p.numel() for name, p in model.named_parameters() if "embed_positions" not in name or family != "marian"
        ) + (0 if biases is None else biases.numel())
        assert report.n_parameters == theirs_all - skipped
        assert report.n_bytes == (tmp_path / family / "model.safetensors").stat().st_size
        assert inspect(tmp_path / family) == report
        assert report.family in describe(report, every_tensor=True)


BACK = [
    ("gpt2", {}),
    ("gpt2", dict(tie_word_embeddings=False)),
    ("llama", {}),
    ("bert", {}),
    ("llama", dict(tie_word_embeddings=True, attention_bias=True, mlp_bias=True)),
    ("llama", dict(attention_bias=True, head_dim=6)),
    (
        "llama",
        dict(
            rope_parameters={
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "rope_theta": 9.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 40,
            }
        ),
    ),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("family", "changes"), BACK, ids=str)
def test_back_to_their_layout(family: str, changes: dict[str, Any], tmp_path: Path) -> None:
    original = load(folders.FAMILIES[family](tmp_path / "theirs", **changes))
    save(original, tmp_path / "again", torch.float32, layout="hugging-face")
    assert {file.name for file in (tmp_path / "again").iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    again = opened_and_same(tmp_path / "again", LM[family])
    assert again.model.config == original.model.config
    assert again.report.assumptions == ()
    for name, tensor in original.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], tensor), name


def test_a_body_without_a_head_goes_back_as_one(tmp_path: Path) -> None:
    save(load(folders.bert(tmp_path / "a", model="BertModel")), tmp_path / "b", torch.float32, layout="hugging-face")
    assert not opened_and_same(tmp_path / "b", "BertModel").report.has_head


def test_a_model_of_ours_goes_there(tmp_path: Path) -> None:
    """Trained here, opened by `transformers`."""
    options = dict(positions="learned", norm_order="pre", final_norm=True, activation="gelu_tanh", max_positions=64)
    save(tiny.checkpoint("decoder-only", **options), tmp_path, layout="hugging-face")
    opened_and_same(tmp_path, "GPT2LMHeadModel")
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == "float16"


def test_a_model_like_none_of_theirs_stays(tmp_path: Path) -> None:
    with pytest.raises(
        CheckpointError, match=r"in Hugging Face layout: GPT-2, BERT, LLaMA.*Save it in VizFormer's own format"
    ):
        save(tiny.checkpoint(), tmp_path, layout="hugging-face")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (tiny.QWEN3, "LLaMA, apart from qk_norm=True"),
        ({**tiny.LLAMA, "attention_bias": "qkv"}, "LLaMA, apart from attention_bias='qkv'"),
        ({**tiny.LLAMA, "scaled_embedding": True}, "LLaMA, apart from scaled_embedding=True"),
    ],
    ids=str,
)
def test_options_that_none_of_theirs_has(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=said):
        save(tiny.checkpoint("decoder-only", **options), tmp_path, layout="hugging-face")


@pytest.mark.parametrize("kind", ["alibi", "relative"])
def test_positions_that_none_of_theirs_has(kind: str, tmp_path: Path) -> None:
    """All else as GPT-2 has it: a layout that cannot say how positions are told must not be written."""
    options = dict(norm_order="pre", final_norm=True, activation="gelu_tanh", max_positions=64)
    with pytest.raises(CheckpointError, match=r"in Hugging Face layout: GPT-2, BERT, LLaMA"):
        save(tiny.checkpoint("decoder-only", positions=kind, **options), tmp_path, layout="hugging-face")
    assert not list(tmp_path.iterdir())


def test_no_family_knows_another() -> None:
    folder = Path(vf.__file__).parent / "checkpoints" / "hugging_face" / "families"
    files = [file for file in folder.glob("*.py") if file.stem != "__init__"]
    assert files
    for file in files:
        assert "hugging_face.families" not in file.read_text(encoding="utf-8"), file.name
