"""Code that computes the pattern of one head without VizFormer: in plain torch, or with `transformers`.

    print(in_torch(checkpoint.model.config, ids, "decoder.2.cross", 3, "model.safetensors"))
    print(in_transformers("openai-community/gpt2", ids, "decoder.5.self", 1))

Run, it leaves `pattern` [n_q, n_k].  Only what the options of a model need is written, and an option that is not written
here is refused.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields

from vizformer.config import ModelConfig
from vizformer.errors import VizformerError
from vizformer.explain.forward_code import attention_name, functions, run
from vizformer.messages import N_

Ids = Mapping[str, Sequence[int]]
"""The token ids of each stack, as `trace.tokens` has them."""

_WRITTEN = frozenset(
    [
        "vocab_size",
        "d_model",
        "n_heads",
        "d_ff",
        "n_encoder_layers",
        "n_decoder_layers",
        "head_dim",
        "n_kv_heads",
        "max_positions",
        "positions",
        "sinusoids",
        "rope_theta",
        "rope_dims",
        "attention_scale",
        "score_cap",
        "sliding_window",
        "sliding_layers",
        "n_segments",
        "embedding_norm",
        "norm_order",
        "first_norm",
        "last_norm",
        "norm",
        "norm_offset",
        "qk_norm",
        "qk_norm_over",
        "residual",
        "final_norm",
        "final_norm_stack",
        "norm_eps",
        "activation",
        "feedforward",
        "bias",
        "attention_bias",
        "scaled_embedding",
        "embedding_scale",
        "residual_scale",
    ]
)
"""Options that the code follows."""
_WITHOUT_MEANING = frozenset(
    [
        "dropout",
        "pad_id",
        "bos_id",
        "eos_id",
        "mask_id",
        "decoder_start_id",
        "forced_bos_id",
        "never_pad",
        "tied_unembedding",
        "head",
        "logit_scale",
        "logit_cap",
        "logit_bias",
    ]
)
"""Options that change no pattern: what comes behind the last layer, and in training."""
_ONLY_WITH = {
    "relative": frozenset({"relative_buckets", "relative_max_distance"}),
    "scaling": frozenset(
        {"rope_factor", "rope_low_turns", "rope_high_turns", "rope_trained_positions", "rope_whole_pairs"}
    ),
}
"""Options that mean something only beside others, which are refused."""


class NotWrittenError(VizformerError):
    """An option of the model for which there is no code here."""


def in_torch(config: ModelConfig, ids: Ids, site: str, head: int, file: str, *, segments: Sequence[int] = ()) -> str:
    """Code in plain torch that reads a model.safetensors in VizFormer's format and computes the pattern of a head.

    pattern = softmax(q k^T / sqrt(d_head) + position bias + mask), after the layers before it, in float32

    Args:
        config: the options of the model.
        ids: of each stack.
        site: of the attention, "decoder.2.cross".
        head: counted from 0.
        file: where the reader has the weights.
        segments: which sentence each token belongs to; empty: all to the first.

    Raises:
        NotWrittenError: an option of the model that this code does not follow.
    """
    _refuse(config)
    stack, layer, _kind = site.split(".")
    both = config.architecture == "encoder-decoder"
    lines = [
        "import torch",
        "import torch.nn.functional as F",
        "from safetensors.torch import load_file",
        "",
        f"w = {{name: tensor.float() for name, tensor in load_file({json.dumps(file, ensure_ascii=False)}).items()}}",
        f"d_head, patterns = {config.d_head}, {{}}",
        "",
        *functions(config),
    ]
    read = run(config, stack, ids[stack], int(layer) + 1, segments=segments if stack == "encoder" or not both else ())
    if both and (stack == "decoder"):
        layers = config.n_encoder_layers
        lines += [
            *run(config, "encoder", ids["encoder"], layers, segments=segments, final=config.ends_with_norm("encoder"))
        ]
        lines += ["memory = x"]
    lines += [
        *read,
        f'pattern = patterns["{attention_name(site)}"][{head}]  # [n_q, n_k]: rows are queries, columns are keys',
        "print(pattern)",
    ]
    return re.sub(r"\n{3,}", "\n\n\n", "\n".join(lines))


def in_transformers(
    model: str, ids: Ids, site: str, head: int, *, revision: str = "", segments: Sequence[int] = ()
) -> str:
    """Code with `transformers` that computes the pattern of a head.

    Args:
        model: owner/name, or a folder.
        ids: of each stack.
        site: of the attention, "decoder.2.cross".
        head: counted from 0.
        revision: of a model of a hub; empty for the newest.
        segments: which sentence each token belongs to; empty: all to the first.
    """
    stack, layer, kind = site.split(".")
    given = f", revision={json.dumps(revision)}" if revision else ""
    quoted = json.dumps(model, ensure_ascii=False)
    if len(ids) == 2:
        call = "ids, decoder_input_ids=target, output_attentions=True"
        maps = "cross_attentions" if kind == "cross" else f"{stack}_attentions"
        texts = [
            f"ids = torch.tensor([{list(ids['encoder'])}])",
            f"target = torch.tensor([{list(ids['decoder'])}])",
        ]
    else:
        call, maps = "ids, output_attentions=True", "attentions"
        texts = [f"ids = torch.tensor([{list(ids[stack])}])"]
        if any(segments):
            call = f"ids, token_type_ids=segments, {call.removeprefix('ids, ')}"
            texts += [f"segments = torch.tensor([{list(segments)}])"]
    return "\n".join(
        [
            "import torch",
            "from transformers import AutoModel",
            "",
            f'model = AutoModel.from_pretrained({quoted}{given}, attn_implementation="eager", dtype=torch.float32).eval()',
            *texts,
            "with torch.no_grad():",
            f"    found = model({call})",
            f"pattern = found.{maps}[{layer}][0, {head}]  # [n_q, n_k]: rows are queries, columns are keys",
            "print(pattern)",
        ]
    )


def _refuse(config: ModelConfig) -> None:
    usual = ModelConfig(vocab_size=1, d_model=2, n_heads=1, d_ff=1, n_decoder_layers=1)
    known = _WRITTEN | _WITHOUT_MEANING
    known |= _ONLY_WITH["scaling"] if config.rope_scaling == "none" else frozenset()
    known |= _ONLY_WITH["relative"] if config.positions != "relative" else frozenset()
    if not (config.embedding_norm or config.positions == "learned"):
        known |= {"stack_inputs"}
    names = [one.name for one in fields(config) if getattr(config, one.name) != getattr(usual, one.name)]
    unwritten = [name for name in names if name not in known]
    if config.positions == "relative":
        unwritten.append("positions")
    if unwritten:
        raise NotWrittenError(N_("There is no code in plain torch for {names}.", names=", ".join(unwritten)))
