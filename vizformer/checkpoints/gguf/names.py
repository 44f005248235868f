"""What GGUF calls the fields and tensors of LLaMA, its relatives and GPT-2, as `transformers` calls them.

llama.cpp turns neighbouring numbers of a head where `transformers` turns halves, and writes the rows of W_Q and W_K of
LLaMA in another order for it: of a head's rows, row j and row j + d/2 lie side by side.  That is undone here.

Source: convert_hf_to_gguf.py and gguf-py (tensor_mapping.py) of llama.cpp.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.gguf import rotary_scaling
from vizformer.checkpoints.gguf.header import Header
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
        scaling = rotary_scaling.scaling(fields, kind, slower, (_d_head(fields, kind) or 0) // 2)
        wrong += [scaling] if isinstance(scaling, Message) else []
        said["rope_scaling"] = scaling
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
    wrong += rotary_scaling.unread(fields, kind)
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
    if name == rotary_scaling.TABLE and kind != "gpt2":
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
