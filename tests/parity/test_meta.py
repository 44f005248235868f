"""Weights in Meta's own format, params.json beside them, against `transformers` on what they were converted to."""

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")

import sentencepiece

from tests.checkpoints import folders
from tests.parity.against_transformers import same_numbers, theirs
from vizformer.assets import asset
from vizformer.checkpoints import load
from vizformer.checkpoints.tensors import memory
from vizformer.checkpoints.tensors.questions import UnansweredError
from vizformer.errors import CheckpointError

NAMES = {"model.embed_tokens": "tok_embeddings", "model.norm": "norm", "lm_head": "output"}
INNER = {
    "input_layernorm": "attention_norm",
    "self_attn.q_proj": "attention.wq",
    "self_attn.k_proj": "attention.wk",
    "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.down_proj": "feed_forward.w2",
    "mlp.up_proj": "feed_forward.w3",
}
SIZES = dict(hidden_size=48, intermediate_size=128, num_attention_heads=4, head_dim=12)
PARAMS = dict(dim=48, n_layers=3, n_heads=4, n_kv_heads=2, vocab_size=-1, multiple_of=32, norm_eps=1e-6)
LLAMA3 = dict(rope_type="llama3", low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)


def neighbours(weights: torch.Tensor, heads: int) -> torch.Tensor:
    """The other way round than convert_llama_weights_to_hf.py: numbers m and m + d/2 of a head become neighbours."""
    return weights.view(heads, 2, -1, weights.shape[1]).transpose(1, 2).reshape(weights.shape)


def published(folder: Path, params: dict[str, Any], **changes: Any) -> tuple[Path, Path]:
    """The folder in Hugging Face layout, and the same weights as Meta publishes them."""
    source, made = folders.llama(folder / "hf", **{**SIZES, **changes}), folder / "meta"
    config = json.loads((source / "config.json").read_text())
    weights = {}
    for name, tensor in folders.tensors(source).items():
        module = name.removesuffix(".weight")
        number, __, inner = module.removeprefix("model.layers.").partition(".")
        new = NAMES.get(module) or f"layers.{number}.{INNER[inner]}"
        if new.endswith(".wq"):
            tensor = neighbours(tensor, config["num_attention_heads"])
        if new.endswith(".wk"):
            tensor = neighbours(tensor, config["num_key_value_heads"])
        weights[f"{new}.weight"] = tensor.contiguous()
    weights["rope.freqs"] = 1.0 / 10_000 ** (torch.arange(0, 12, 2) / 12)
    made.mkdir()
    torch.save(weights, made / "consolidated.00.pth")
    (made / "params.json").write_text(json.dumps(params))
    shutil.copy(source / "tokenizer.json", made)
    return source, made


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({}, {}),
        ({}, dict(vocab_size=None)),
        (dict(num_key_value_heads=4), dict(n_kv_heads=None)),
        (dict(intermediate_size=192), dict(ffn_dim_multiplier=1.3)),
        (dict(head_dim=8), dict(head_dim=8, hidden_dim=128)),
        (
            dict(rope_parameters=dict(rope_theta=5e5, rope_type="default")),
            dict(rope_theta=500000.0, use_scaled_rope=False),
        ),
        (dict(tie_word_embeddings=True), {}),
        (dict(kind="Mistral", sliding_window=3), dict(sliding_window=3)),
    ],
)
@pytest.mark.sample(3)
def test_the_numbers_are_those_of_the_converted_model(changes, more, tmp_path: Path) -> None:
    source, made = published(tmp_path, {**PARAMS, **more}, **changes)
    ours = load(made)
    same_numbers(ours, theirs(source, f"{changes.get('kind', 'Llama')}ForCausalLM"))
    assert ours.report.family == "LLaMA (Meta)"
    assert {fate.name for fate in ours.report.with_fate("unused")} == {"rope.freqs"}


def sliced(made: Path, n: int, *, rows: bool) -> dict[str, torch.Tensor]:
    """Cuts the weights for n machines, as fairscale does; `rows`: of the embeddings, as LLaMA 3, else columns."""
    whole = torch.load(made / "consolidated.00.pth", weights_only=True)
    for number in range(n):
        part = {}
        for name, tensor in whole.items():
            columns = ".wo." in name or ".w2." in name or (name == "tok_embeddings.weight" and not rows)
            part[name] = tensor.chunk(n, int(columns))[number].clone() if tensor.dim() == 2 else tensor
        torch.save(part, made / f"consolidated.{number:02}.pth")
    return whole


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.sample(1)
def test_slices_for_several_machines_are_put_together(rows: bool, tied: bool, tmp_path: Path) -> None:
    source, made = published(tmp_path, PARAMS, tie_word_embeddings=tied)
    before = load(made).report
    whole = sliced(made, 2, rows=rows)
    ours = load(made)
    same_numbers(ours, theirs(source, "LlamaForCausalLM"))
    assert {fate.name: fate.shape for fate in ours.report.tensors} == {n: tuple(t.shape) for n, t in whole.items()}
    assert list(ours.report.files) == ["consolidated.00.pth", "consolidated.01.pth"]
    assert any("2 files each have a slice of every matrix" in str(said) for said in ours.report.assumptions)
    matrices = sum(tensor.nbytes for name, tensor in whole.items() if tensor.dim() == 2)
    needed = memory.need(ours.report, torch.float32)
    assert needed.weights > memory.need(before, torch.float32).weights  # what is put together is not mapped
    assert needed.weights >= matrices * (1 if not tied else 0.5)
    for name in ("consolidated.00.pth", "consolidated.01.pth"):  # each of them stands for all
        same_numbers(load(made / name), theirs(source, "LlamaForCausalLM"))


def test_slices_that_are_not_of_one_model_or_incomplete_are_refused(tmp_path: Path) -> None:
    __, made = published(tmp_path, PARAMS)
    sliced(made, 4, rows=True)
    last = torch.load(made / "consolidated.03.pth", weights_only=True)
    for changed, said in (
        ({**last, "norm.weight": last["norm.weight"] + 1}, r'VizFormer does not know how "norm\.weight" was split'),
        ({**last, "adapter.weight": torch.ones(2, 2)}, r'"adapter\.weight" is missing in some of them'),
        (
            {**last, "output.weight": last["output.weight"][:-1]},
            r'"output\.weight" is missing in some of them, or differs',
        ),
        (
            {**last, "output.weight": last["output.weight"].half()},
            r'"output\.weight" is missing in some of them, or differs',
        ),
    ):
        torch.save(changed, made / "consolidated.03.pth")
        with pytest.raises(CheckpointError, match=f"do not fit together as slices of one model: {said}"):
            load(made)
    (made / "consolidated.03.pth").unlink()
    with pytest.raises(CheckpointError, match="put all of them into the folder"):
        load(made)
    (made / "consolidated.01.pth").unlink()
    with pytest.raises(CheckpointError, match=r"lacks .*consolidated\.01\.pth"):
        load(made)
    torch.save({**last, "experts": torch.ones(2, 2)}, made / "consolidated.01.pth")
    for number in (0, 2):
        part = torch.load(made / f"consolidated.{number:02}.pth", weights_only=True)
        torch.save({**part, "experts": torch.ones(2, 2)}, made / f"consolidated.{number:02}.pth")
    with pytest.raises(CheckpointError, match='VizFormer does not know how "experts" was split'):
        load(made)


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_by_which_factor_rotations_are_slowed_is_asked_as_params_do_not_say_it(factor: float, tmp_path: Path) -> None:
    """LLaMA 3.1 and 3.2 have the same fields."""
    rope = dict(rope_parameters={**LLAMA3, "rope_theta": 5e5, "factor": factor})
    source, made = published(
        tmp_path, {**PARAMS, "rope_theta": 5e5, "use_scaled_rope": True, "rope_scaling_factor": None}, **rope
    )
    with pytest.raises(UnansweredError, match=r"rope_factor .*LLaMA 3.1: 8, LLaMA 3.2: 32"):
        load(made)
    same_numbers(load(made, rope_factor=int(factor)), theirs(source, "LlamaForCausalLM"))
    (made / "params.json").write_text(
        json.dumps({**PARAMS, "rope_theta": 5e5, "use_scaled_rope": True, "rope_scaling_factor": factor})
    )
    same_numbers(load(made), theirs(source, "LlamaForCausalLM"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (dict(dim=96), "dim is 96, and 48 in the tensors"),
        (dict(n_layers=2), "n_layers is 2, and 3 in the tensors"),
        (dict(n_kv_heads=4), r"n_kv_heads \* head_dim is 48, and 24 in the tensors"),
        (dict(vocab_size=7), "vocab_size is 7, and 340 in the tensors"),
        (dict(multiple_of=256), "ffn_dim is 256, and 128 in the tensors"),
        (dict(n_heads="four"), '"n_heads"="four"'),
        (dict(n_heads=2**40), '"n_heads"=1099'),
        (dict(norm_eps=5), '"norm_eps"=5'),
        (dict(multiple_of=0), '"multiple_of"=0'),
        (dict(rope_theta=float("nan")), "params.json"),
        (dict(moe={"num_experts": 8}), '"moe"='),
    ],
)
def test_params_that_do_not_go_with_the_tensors(wrong, said, tmp_path: Path) -> None:
    __, made = published(tmp_path, {**PARAMS, **wrong})
    with pytest.raises(CheckpointError, match=said):
        load(made)


def pieces_of(folder: Path) -> sentencepiece.SentencePieceProcessor:
    """A vocabulary as LLaMA's was trained, on a bundled text."""
    folder.mkdir()
    with (folder / "tokenizer.model").open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(asset("corpora", "en.txt").read_text().splitlines()),
            model_writer=file,
            model_type="bpe",
            vocab_size=600,
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            minloglevel=2,
        )
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))


def test_a_text_begins_with_the_mark_of_the_pieces_beside_the_weights(tmp_path: Path) -> None:
    pieces = pieces_of(tmp_path / "pieces")
    __, made = published(tmp_path, PARAMS, vocab_size=600)
    (made / "tokenizer.json").unlink()
    shutil.copy(tmp_path / "pieces" / "tokenizer.model", made)
    ours = load(made)
    assert [token.id for token in ours.encode("Two dogs")] == [1, *pieces.encode("Two dogs")]
    assert (ours.model.config.bos_id, ours.model.config.eos_id) == (1, 2)


def test_the_file_of_llama_3_is_not_read_and_its_marks_are_those_of_tokenizer_json(tmp_path: Path) -> None:
    """Its tokenizer.model is a line for each token, its bytes in base64 and its rank."""
    __, made = published(tmp_path, PARAMS)
    content = json.loads((made / "tokenizer.json").read_text())
    (made / "tokenizer.json").unlink()
    lines = (f"{base64.b64encode(bytes([byte])).decode()} {byte}\n" for byte in range(256))
    (made / "tokenizer.model").write_text("".join(lines))
    with pytest.raises(CheckpointError, match=r"tokenizer\.model.* LLaMA 3's .*is not read.*save_pretrained"):
        load(made)
    renamed = {"<s>": "<|begin_of_text|>", "</s>": "<|end_of_text|>"}
    model = content["model"]
    model["vocab"] = {renamed.get(token, token): id for token, id in model["vocab"].items()}
    for token in content["added_tokens"]:
        token["content"] = renamed.get(token["content"], token["content"])
    (made / "tokenizer.json").write_text(json.dumps(content | {"post_processor": None}))
    assert (load(made).model.config.bos_id, load(made).model.config.eos_id) == (1, 2)


def test_a_file_of_llama2_c_says_its_fields_itself(tmp_path: Path) -> None:
    source, made = published(tmp_path, {}, num_key_value_heads=4, tie_word_embeddings=True)
    (made / "params.json").unlink()
    weights = torch.load(made / "consolidated.00.pth", weights_only=True)
    said = {**PARAMS, "n_kv_heads": 4, "vocab_size": 340, "max_seq_len": 64, "dropout": 0.0}
    torch.save({"model": weights, "model_args": said}, made / "consolidated.00.pth")
    ours = load(made)
    assert ours.model.config.max_positions == 64
    same_numbers(ours, theirs(source, "LlamaForCausalLM"))
    del said["multiple_of"]  # then nothing says that it is that code
    for content in ({"model": weights, "model_args": said}, weights):
        torch.save(content, made / "consolidated.00.pth")
        with pytest.raises(CheckpointError, match="contains only weights"):
            load(made)
