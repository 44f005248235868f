"""What GGUF calls the fields and tensors of LLaMA, its relatives and GPT-2, as `transformers` calls them.

llama.cpp turns neighbouring numbers of a head where `transformers` turns halves, and writes the rows of W_Q and W_K of
LLaMA in another order for it: of a head's rows, row j and row j + d/2 lie side by side.  That is undone here.

Source: convert_hf_to_gguf.py and gguf-py (tensor_mapping.py) of llama.cpp.

What slows the rotary positions down is one factor for all pairs, or the table that LLaMA 3.1 has: llama.cpp divides all
angles by the factor, unless `rope.scaling.type` is "none", and those of pair m by entry m of `rope_freqs.weight`.  The
file does not say what the table was made of; it is looked for among the tables that llama3's rule makes, and what is
computed then is held against the table.

Source: llama.cpp, llama-model.cpp (load_hparams, get_rope_factors) and convert_hf_to_gguf.py (LlamaModel).
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.gguf.header import Header
from vizformer.checkpoints.hugging_face.rotary import TRAINED
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message
from vizformer.word_tables import data_of

ARCHITECTURES = ("llama", "qwen2", "qwen3", "gpt2")
_PERMUTED = "llama"
_NAMES = data_of(__file__)
_LLAMA, _GPT2 = _NAMES["tensors"]["llama"], _NAMES["tensors"]["gpt2"]
_TURNED = re.compile(r"blk\.\d+\.(?:attn_qkv|attn_output|ffn_up|ffn_down)\.weight")  # GPT-2's Conv1D is [in, out]
_QK = re.compile(r"blk\.\d+\.attn_(?P<letter>[qk])\.(?:weight|bias)")
_SIZES = _NAMES["sizes"]
_NEEDED = ("embedding_length", "block_count", "feed_forward_length", "attention.head_count", "context_length")


def architecture(header: Header, file: str) -> str:
    said = header.fields.get("general.architecture")
    if said not in ARCHITECTURES:
        raise CheckpointError(
            "{file} is a GGUF file of the architecture {kind}; read are {read}. Open the original model, the folder "
            "with config.json and model.safetensors.",
            file=shown(file),
            kind=shown(said),
            read=", ".join(ARCHITECTURES),
        )
    return str(said)


def config(header: Header, file: str, slower: Tensor | None = None) -> dict[str, Any]:
    """The fields of config.json that a file of `transformers` would have; `slower`: a table that slows rotary positions."""
    kind = architecture(header, file)
    fields, wrong = header.fields, _unsupported(header, kind)
    sizes = _SIZES["gpt2" if kind == "gpt2" else "llama"]
    said: dict[str, Any] = {"model_type": kind}
    for theirs, ours in sizes.items():
        value = fields.get(f"{kind}.{theirs}")
        if value is None and theirs not in _NEEDED:
            continue
        if type(value) is not int or value < 1:
            wrong.append(N_("{field}={value} is no size", field=f"{kind}.{theirs}", value=shown(value)))
            continue
        said[ours] = value
    table = header.tensors.get("token_embd.weight")
    if table is None or len(table.shape) != 2:
        wrong.append(N_("{name} is missing", name="token_embd.weight"))
    else:
        said["vocab_size"] = table.shape[0]
    epsilon = "attention.layer_norm_epsilon" if kind == "gpt2" else "attention.layer_norm_rms_epsilon"
    said["layer_norm_epsilon" if kind == "gpt2" else "rms_norm_eps"] = fields.get(f"{kind}.{epsilon}", 1e-5)
    said["tie_word_embeddings"] = "output.weight" not in header.tensors
    for theirs, ours in (("bos", "bos_token_id"), ("eos", "eos_token_id"), ("padding", "pad_token_id")):
        id = fields.get(f"tokenizer.ggml.{theirs}_token_id")
        said[ours] = id if type(id) is int and table is not None and 0 <= id < table.shape[0] else None
    if kind != "gpt2":  # what llama.cpp computes, whatever no field says
        said |= {"hidden_act": "silu", **({} if kind == "llama" else {"use_sliding_window": False})}
        said["rope_theta"] = fields.get(f"{kind}.rope.freq_base", 10_000.0)
        found = scaling(fields, kind, slower, (_d_head(fields, kind) or 0) // 2)
        wrong += [found] if isinstance(found, Message) else []
        said["rope_scaling"] = found
    if kind == "llama":
        said["attention_bias"] = "blk.0.attn_output.bias" in header.tensors
        said["mlp_bias"] = "blk.0.ffn_down.bias" in header.tensors
    if wrong:
        raise CheckpointError(
            "{file} asks for what is not read from GGUF files: {problems}. Open the original model, the folder with "
            "config.json and model.safetensors.",
            file=shown(file),
            problems=tuple(wrong),
        )
    return said


def _unsupported(header: Header, kind: str) -> list[Message]:
    """What a model of this architecture may ask for and is not computed, or not read."""
    fields = header.fields
    wrong = [
        N_("{field}={value}", field=field, value=shown(fields[field]))
        for field, plain in {
            f"{kind}.expert_count": (0,),
            f"{kind}.attention.sliding_window": (0,),
            f"{kind}.attention.causal": (True,),
            f"{kind}.use_parallel_residual": (False,),
        }.items()
        if field in fields and fields[field] not in plain
    ]
    wrong += unread(fields, kind)
    if (d_head := _d_head(fields, kind)) is not None:
        for field in ("rope.dimension_count", "attention.value_length"):
            found = fields.get(f"{kind}.{field}", d_head)
            if found != d_head:
                wrong.append(N_("{field}={value}", field=f"{kind}.{field}", value=shown(found)))
    return wrong


def _d_head(fields: Mapping[str, Any], kind: str) -> int | None:
    """The width of a head, where the fields that say it are numbers."""
    heads, width = fields.get(f"{kind}.attention.head_count"), fields.get(f"{kind}.embedding_length")
    if type(heads) is not int or type(width) is not int or heads < 1:
        return None
    d_head = fields.get(f"{kind}.attention.key_length", width // heads)
    return d_head if type(d_head) is int else None


def renamed(name: str, kind: str) -> str:
    """The name that `transformers` gives a tensor; its own where it has none."""
    if name == TABLE and kind != "gpt2":
        return "model.rotary_emb.inv_freq"
    module, __, part = name.rpartition(".")
    number = re.search(r"(?<=^blk\.)\d{1,4}(?=\.)", module)
    known: Mapping[str, str] = _GPT2 if kind == "gpt2" else _LLAMA
    found = known.get(re.sub(r"(?<=^blk\.)\d{1,4}(?=\.)", "#", module))
    if found is None or part not in ("weight", "bias"):
        return name
    return f"{found.replace('#', number[0] if number else '')}.{part}"


def restored(name: str, kind: str, said: Mapping[str, Any]) -> Callable[[Tensor], Tensor] | None:
    """What brings a tensor into the order that `transformers` has; None where it is in it."""
    if kind == "gpt2":
        return (lambda tensor: tensor.T) if _TURNED.fullmatch(name) else None
    found = _QK.fullmatch(name) if kind == _PERMUTED else None
    if found is None:
        return None
    heads = said["num_attention_heads"]
    n = heads if found["letter"] == "q" else said.get("num_key_value_heads", heads)
    return lambda tensor: halves_apart(tensor, n)


def halves_apart(tensor: Tensor, heads: int) -> Tensor:
    """Rows j and j + d/2 of a head, which lie side by side, [heads, d/2, 2, ...], one half under the other."""
    rest = tensor.shape[1:]
    if heads < 1 or tensor.shape[0] % (2 * heads):
        return tensor  # of another shape than the config says, which the matching tells
    return tensor.reshape(heads, -1, 2, *rest).transpose(1, 2).reshape(tensor.shape)


TABLE = "rope_freqs.weight"
_LOW, _HIGH = 1.0, 4.0  # turns, in all models that were published with llama3's rule
_LENGTHS = [2**n for n in range(5, 21)]  # of the first training; that of LLaMA 3 was 8,192
_AS_GOOD_AS_EQUAL = 1e-5  # of float32 tables, whose angles were computed in float32 as well


def scaling(fields: Mapping[str, Any], kind: str, table: Tensor | None, pairs: int) -> dict[str, Any] | Message | None:
    """rope_scaling of config.json for heads of so many pairs; None where nothing is slowed down; a message where it
    cannot be said by it."""
    name = f"{kind}.rope.scaling.factor"
    if name not in fields:
        name = f"{kind}.rope.scale_linear"
    factor = fields.get(name, 0)
    if factor in (0, 1) or fields.get(f"{kind}.rope.scaling.type") == "none":
        factor = 1
    linear = None if factor == 1 else {"rope_type": "linear", "factor": factor}
    if table is None or (tuple(table.shape) == (pairs,) and bool((table == 1).all())):
        return linear
    found = _llama3(table, fields.get(f"{kind}.rope.freq_base", 10_000.0), pairs)
    if found is None or linear is not None:
        return N_("{name}: rotary positions slowed down by a table", name=TABLE)
    return found


def _llama3(table: Tensor, theta: object, pairs: int) -> dict[str, Any] | None:
    """The rule that makes the table, if there is one."""
    if tuple(table.shape) != (pairs,) or type(theta) not in (int, float) or not 0 < theta < 1e30:  # type: ignore[operator]
        return None
    slower = table.double()
    factor = float(slower.max())
    if not 1 < factor < 1e6:
        return None
    frequency = torch.exp(-math.log(theta) * torch.arange(pairs, dtype=torch.float64) / pairs)  # type: ignore[arg-type]
    for length in _LENGTHS:
        kept = ((length * frequency / (2 * math.pi) - _LOW) / (_HIGH - _LOW)).clamp(0, 1)
        if torch.allclose(slower, 1 / (kept + (1 - kept) / factor), rtol=_AS_GOOD_AS_EQUAL, atol=0):
            return {
                "rope_type": "llama3",
                "factor": factor,
                "low_freq_factor": _LOW,
                "high_freq_factor": _HIGH,
                TRAINED: length,
            }
    return None


def unread(fields: Mapping[str, Any], kind: str) -> list[Message]:
    """Other fields that llama.cpp follows and nothing here does."""
    plain = {"rope.scaling.type": ("none", "linear"), "rope.scaling.attn_factor": (0, 1)}
    return [
        N_("{field}={value}", field=f"{kind}.{field}", value=shown(fields[f"{kind}.{field}"]))
        for field, values in plain.items()
        if f"{kind}.{field}" in fields and fields[f"{kind}.{field}"] not in values
    ]
