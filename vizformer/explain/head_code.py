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
from vizformer.explain.activations import ACTIVATIONS

Ids = Mapping[str, Sequence[int]]  # the token ids of each stack, as `trace.tokens` has them

_WITHOUT_EFFECT = frozenset(
    {
        *("vocab_size", "d_model", "d_ff", "max_positions", "bias", "attention_bias"),  # the weights and ids say them
        # options of the prediction and of training, which no pattern depends on
        *(
            "dropout",
            "final_norm",
            *("tied_unembedding", "head", "logit_scale", "logit_bias", "never_pad"),
            *(name for name in ModelConfig.__annotations__ if name.endswith("_id")),
        ),
    }
)
"""Options that change no pattern of a text, whether the code asks for them or not."""

_NORMS = {
    "layer_norm": 'F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], {eps})',
    "rms_norm": 'F.rms_norm(x, x.shape[-1:], w[name + ".weight"], {eps})',
}


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


# Lines of plain torch that compute the forward of a model, as far as its options ask for them.
#
# `functions` writes what a layer consists of, `run` the layers of a stack; the pattern of every attention is kept in
# a table called `patterns`.
def functions(config: ModelConfig) -> list[str]:
    """The code of the functions that a layer calls."""
    return [
        "",
        "def linear(x, name):  # x W + b",
        '    return F.linear(x, w[name + ".weight"], w.get(name + ".bias"))',
        "",
        "",
        "def norm(x, name):",
        "    return " + _NORMS[config.norm].format(eps=config.norm_eps),
        "",
        *_attention(config),
        "",
        *_feedforward(config),
        "",
        *_layer(config),
        "",
        *_embedding(config),
        "",
    ]


def _attention(config: ModelConfig) -> list[str]:
    """The code of softmax(q k^T scale + bias + mask) v, which keeps each pattern by its site's name."""
    group = config.n_heads // config.kv_heads
    scale = f"{config.d_head}**-0.5" if config.attention_scale is None else repr(config.attention_scale)

    def heads(part: str, of: str) -> str:
        rows = f'linear({of}, name + ".W_{part.upper()}")'
        cut = f"{rows}.unflatten(-1, (-1, d_head)).transpose(0, 1)"
        return f'norm({cut}, name + ".{part}_norm")' if config.qk_norm and part != "v" else cut

    lines = []
    if config.positions == "rope":
        d = config.d_head
        lines += [
            "",
            "def turned(x):  # each pair (m, m + d/2) by the angle position * theta^(-2m/d)",
            f"    pair = torch.arange(0, {d}, 2, dtype=torch.float64)",
            f"    angle = torch.arange(x.shape[1])[:, None] * {config.rope_theta!r} ** (-pair / {d})",
            "    cos, sin = angle.cos().float(), angle.sin().float()",
            "    a, b = x.chunk(2, dim=-1)",
            "    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)",
            "",
        ]
    lines += [
        "",
        "def attention(x, source, name, mask=None):  # the queries of x look at the keys of source",
        f"    q = {heads('q', 'x')}  # [heads, n_q, d_head]",
        f"    k = {heads('k', 'source')}",
        f"    v = {heads('v', 'source')}",
    ]
    if config.positions == "rope":
        lines += ["    if x is source:", "        q, k = turned(q), turned(k)"]
    if group > 1:
        lines += [f"    k, v = k.repeat_interleave({group}, dim=0), v.repeat_interleave({group}, dim=0)"]
    lines += [f"    scores = q @ k.mT * {scale}  # [heads, n_q, n_k]"]
    if config.positions == "alibi":
        lines += [
            "    if x is source:",
            "        place = torch.arange(len(x))",
            f"        slopes = torch.tensor({_slopes(config.n_heads)})[:, None, None]",
            "        scores = scores - slopes * (place[:, None] - place).abs()",
        ]
    return [
        *lines,
        "    if mask is not None:",
        '        scores = scores.masked_fill(mask, float("-inf"))',
        "    patterns[name] = scores.softmax(-1)",
        '    return linear((patterns[name] @ v).transpose(0, 1).flatten(1), name + ".W_O")',
        "",
    ]


def _slopes(n_heads: int) -> list[float]:
    from vizformer.model.positions import alibi_slopes

    return [float(one) for one in alibi_slopes(n_heads)]


def _feedforward(config: ModelConfig) -> list[str]:
    act = ACTIVATIONS[config.activation].code("x")
    inner, last = 'linear(x, name + ".W_in")', 'return linear({hidden}, name + ".W_out")'
    if config.feedforward == "gated":
        lines = [
            '    hidden = linear(x, name + ".W_in")',
            '    x = linear(x, name + ".W_gate")',
            "    " + last.format(hidden=f"{act} * hidden"),
        ]
    else:
        lines = [f"    x = {inner}", "    " + last.format(hidden=act)]
    return ["", "def feedforward(x, name):", *lines, ""]


def _layer(config: ModelConfig) -> list[str]:
    """The code of a layer: add & norm around each sublayer, in the model's order."""
    sums = {
        "post": "norm(x + sublayer(x), name + '_norm')",
        "pre": "x + sublayer(norm(x, name + '_norm'))",
        "none": "x + sublayer(x)",
    }
    added = sums[config.norm_order]
    added = added if config.residual != "none" else added.replace("x + ", "", 1)
    both = config.architecture == "encoder-decoder"
    cross = [
        "    if memory is not None:",
        '        x = add(x, lambda y: attention(y, memory, name + ".cross_attention"), name + ".cross")',
    ]
    return [
        "",
        "def add(x, sublayer, name):  # add & norm",
        f"    return {added}".replace("'", '"'),
        "",
        "",
        f"def layer(x, name, mask=None{', memory=None' if both else ''}):",
        '    x = add(x, lambda y: attention(y, y, name + ".self_attention", mask), name + ".self")',
        *(cross if both else []),
        '    return add(x, lambda y: feedforward(y, name + ".feedforward"), name + ".feedforward")',
        "",
    ]


def _embedding(config: ModelConfig) -> list[str]:
    given = "ids, segments=0" if config.n_segments else "ids"
    lines = ["", f"def embed({given}):", f'    x = w["embedding.weight"][ids]{_times(config)}']
    if config.positions == "learned":
        lines += ['    x = x + w["position_embedding.weight"][: len(ids)]']
    if config.positions == "sinusoidal":
        d, axis = config.d_model, 1 if config.sinusoids == "halves" else 2
        lines += [
            f"    pair = torch.arange(0, {d}, 2, dtype=torch.float64)",
            f"    angle = torch.arange(len(ids))[:, None] * 10000.0 ** (-pair / {d})",
            f"    x = x + torch.stack([angle.sin(), angle.cos()], dim={axis}).reshape(len(ids), {d}).float()",
        ]
    if config.n_segments:
        lines += ['    x = x + w["segment_embedding.weight"][segments]']
    if config.embedding_norm:
        lines += ['    x = norm(x, "embedding_norm")']
    return [*lines, "    return x", ""]


def _times(config: ModelConfig) -> str:
    return f" * {config.d_model}**0.5" if config.scaled_embedding else ""


def run(
    config: ModelConfig,
    stack: str,
    ids: Sequence[int],
    layers: int,
    *,
    segments: Sequence[int] = (),
    final: bool = False,
) -> list[str]:
    """The code that runs the layers of a stack, up to the layer of the site."""
    given = f", torch.tensor({list(segments)})" if any(segments) else ""
    lines = [f"x = embed(torch.tensor({list(ids)}){given})"]
    both = config.architecture == "encoder-decoder"
    name, given = f'f"{stack}.layers.{{i}}"', ", memory=memory" if both and stack == "decoder" else ""
    if stack == "decoder":
        lines += ["place = torch.arange(len(x))", "mask = place > place[:, None]  # the future"]
        if windowed := sorted(config.windowed_layers):
            few = "" if len(windowed) == config.n_decoder_layers else f" if i in {windowed} else mask"
            window = f"mask | (place <= place[:, None] - {config.sliding_window})"
            given = f", {window if not few else f'({window}){few}'}{given}"
        else:
            given = f", mask{given}"
    elif windowed := sorted(config.windowed_layers):
        lines += ["place = torch.arange(len(x))", f"far = (place - place[:, None]).abs() >= {config.sliding_window}"]
        given = (
            f", far{given}"
            if len(windowed) == config.n_encoder_layers
            else f", far if i in {windowed} else None{given}"
        )
    lines += [f"for i in range({layers}):", f"    x = layer(x, {name}{given})"]
    return [*lines, f'x = norm(x, "{stack}.final_norm")'] if final else lines


def attention_name(site: str) -> str:
    stack, layer, kind = site.split(".")
    return f"{stack}.layers.{layer}.{kind}_attention"
