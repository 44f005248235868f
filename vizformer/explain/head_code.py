"""Code that computes the pattern of one head without VizFormer: in plain torch, or with `transformers`.

    print(in_torch(checkpoint.model.config, ids, "decoder.2.cross", 3, "model.safetensors"))
    print(in_transformers("openai-community/gpt2", ids, "decoder.5.self", 1))

Run, it leaves `pattern` [n_q, n_k].  Only what the options of a model need is written, and an option that the code
does not ask for is refused.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from vizformer.config import ModelConfig
from vizformer.errors import VizformerError
from vizformer.explain.forward_code import attention_name, functions, run
from vizformer.options.marks import MarkOptions
from vizformer.options.prediction import PredictionOptions

Ids = Mapping[str, Sequence[int]]  # the token ids of each stack, as `trace.tokens` has them

_WITHOUT_EFFECT = frozenset(
    {
        *("vocab_size", "d_model", "d_ff", "max_positions", "bias", "attention_bias"),  # the weights and ids say them
        # options of the prediction and of training, which no pattern depends on
        *(
            "dropout",
            "final_norm",
            *PredictionOptions.__annotations__,
            *MarkOptions.__annotations__,
        ),
    }
)
"""Options that change no pattern of a text, whether the code asks for them or not."""


class NotWrittenError(VizformerError):
    """An option of the model for which there is no code here."""


def in_torch(config: ModelConfig, ids: Ids, site: str, head: int, file: str, *, segments: Sequence[int] = ()) -> str:
    """Code in plain torch that reads a model.safetensors in VizFormer's format and computes the pattern of a head.

    pattern = softmax(q k^T / sqrt(d_head) + position bias + mask), after the layers before it, in float32

    Args:
        config: the options of the model.
        ids: the token ids of each stack.
        site: the name of the attention, e.g. "decoder.2.cross".
        head: counted from 0.
        file: the path of the reader's weights.
        segments: which sentence each token belongs to; empty: all to the first.

    Raises:
        NotWrittenError: an option of the model that this code does not follow.
    """
    asked = _Asked(**config.to_dict())
    stack, layer, _kind = site.split(".")
    both = asked.architecture == "encoder-decoder"
    lines = [
        "import torch",
        "import torch.nn.functional as F",
        "from safetensors.torch import load_file",
        "",
        f"w = {{name: tensor.float() for name, tensor in load_file({json.dumps(file, ensure_ascii=False)}).items()}}",
        f"d_head, patterns = {asked.d_head}, {{}}",
        "",
        *functions(asked),
    ]
    read = run(asked, stack, ids[stack], int(layer) + 1, segments=segments if stack == "encoder" or not both else ())
    if both and (stack == "decoder"):
        layers = asked.n_encoder_layers
        lines += [*run(asked, "encoder", ids["encoder"], layers, segments=segments, final=asked.final_norm)]
        lines += ["memory = x"]
    lines += [
        *read,
        f'pattern = patterns["{attention_name(site)}"][{head}]  # [n_q, n_k]: rows are queries, columns are keys',
        "print(pattern)",
    ]
    _refuse(config, asked.names)
    return re.sub(r"\n{3,}", "\n\n\n", "\n".join(lines))


def in_transformers(
    model: str, ids: Ids, site: str, head: int, *, revision: str = "", segments: Sequence[int] = ()
) -> str:
    """Code with `transformers` that computes the pattern of a head.

    Args:
        model: owner/name, or a folder.
        ids: the token ids of each stack.
        site: the name of the attention, e.g. "decoder.2.cross".
        head: counted from 0.
        revision: the revision of a model on a hub; empty: the newest.
        segments: which sentence each token belongs to; empty: all to the first.
    """
    stack, layer, kind = site.split(".")
    given = f", revision={json.dumps(revision)}" if revision else ""
    quoted = json.dumps(model, ensure_ascii=False)
    if len(ids) == 2:
        call = "ids, decoder_input_ids=target, output_attentions=True"
        maps = "cross_attentions" if kind == "cross" else f"{stack}_attentions"
        texts = [f"ids = torch.tensor([{list(ids['encoder'])}])", f"target = torch.tensor([{list(ids['decoder'])}])"]
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


class _Asked(ModelConfig):
    """A model's options, with a record of those that were read, which are the ones that the code follows."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", set())

    def __getattribute__(self, name: str) -> Any:
        if name in ModelConfig.__dataclass_fields__:
            self.names.add(name)
        return super().__getattribute__(name)


def _refuse(config: ModelConfig, asked: set[str]) -> None:
    followed = asked | _WITHOUT_EFFECT | set(config.without_meaning())
    unwritten = [name for name in config.unusual() if name not in followed]
    if config.positions == "relative":
        unwritten.append("positions")
    if unwritten:
        raise NotWrittenError("There is no code in plain torch for {names}.", names=", ".join(unwritten))
