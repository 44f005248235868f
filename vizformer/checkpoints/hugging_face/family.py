"""The interface between the loader and a family of models: three functions and a few names."""

import math
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from tokenizers import Tokenizer as Backend
from torch import Tensor

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import THEIRS, Part, layers, linear
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.checkpoints.tokenizers.vocabularies import Vocabularies
from vizformer.config import ModelConfig
from vizformer.messages import N_, Message

Options = dict[str, Any]  # of ModelConfig
Config = Callable[[Fields, Collection[str]], tuple[Options, bool]]  # see `Family.config`
More = Options | Callable[[Fields, Options], Options]

_WITH_HEAD = (
    "ForMaskedLM",
    "ForPreTraining",
    "ForCausalLM",
    "LMHeadModel",
    "WithLMHead",
    "ForConditionalGeneration",
    "MarianMTModel",
)

Made = dict[str, Callable[[], Tensor]]  # by our names
WAVES = N_("positions are sinusoidal; VizFormer stores them as a table")


def head(config: ModelConfig) -> list[Part]:
    """The output layer, where it is not tied, and its bias, where it has one."""
    weight = [] if config.tied_unembedding else linear("lm_head", "unembedding", bias=False)
    return [*weight, *([Part("lm_head.bias", ("logit_bias",))] if config.logit_bias else [])]


@dataclass(frozen=True)
class Export:
    """The way back: what a config must be to fit the family, and what config.json then says."""

    model_type: str  # of config.json
    # the options that decide whether a model is one of the family, with what they may be, where that is another value
    # than the one that `ModelConfig` has from the start
    fits: Mapping[str, Collection[Any]]
    # the options that `fields` writes down, whatever they are.  All others must be as `ModelConfig` has them from the
    # start, so that an option that is new here is never lost on the way
    written: Collection[str]
    fields: Callable[[ModelConfig, bool], dict[str, Any]]  # (config, whether there is a head) -> config.json


@dataclass(frozen=True)
class Family:
    """One way of naming and storing a model."""

    name: str  # as people call it
    # the model_type of config.json of all that are read so; `fields.KNOWN` has what is usual in each
    types: tuple[str, ...]
    prefix: str  # of the tensors of the model without its head; not in files that hold only that
    head: str  # with what the names of the head's tensors begin; they never have the prefix
    config: Config  # (fields, names of the tensors) -> the options of our model, and whether it has a head for tokens
    weights: Callable[[ModelConfig], list[Part]]  # (config) -> what becomes of every tensor
    ties: Callable[[ModelConfig], dict[str, str]]  # (config) -> second names under which some files repeat a tensor
    # reads the family's vocabulary files, where there is no tokenizer.json; two of them where translations are split
    # otherwise than texts.  Usually none is read
    tokenizer: Callable[[Folder], Backend | Vocabularies] = only_tokenizer_json
    # (config) -> names of tensors that are read only where another one is not there: that one, and why not otherwise
    spare: Callable[[ModelConfig], Mapping[str, tuple[str, Message]]] | None = None
    # (config) -> tensors of some files that follow from the options, and how: they must be just that
    computed: Callable[[ModelConfig], Mapping[str, Callable[[], Tensor]]] | None = None
    # (config) -> parameters of ours that no file has, and how they are made: biases of 0 where the family has none,
    # positions that follow from the options.  `config` says so in an assumption
    made: Callable[[ModelConfig], Mapping[str, Callable[[], Tensor]]] | None = None
    unused: Mapping[str, Message] = field(default_factory=dict)  # pattern of names -> why such a tensor is not needed
    renamed: Mapping[str, str] = field(default_factory=dict)  # pattern -> replacement, of names in old files
    usual: Mapping[str, str] = field(default_factory=dict)  # the special tokens by role, where no file says them
    exports: tuple[Export, ...] = ()  # the ways back; the first one that fits is taken


def said(names: Mapping[str, str], config: ModelConfig) -> dict[str, Any]:
    """Fields of config.json that say one thing of a model each; `names`: theirs -> that of `config`."""
    values = {theirs: getattr(config, ours) for theirs, ours in names.items()}
    return {theirs: THEIRS[value] if names[theirs] == "activation" else value for theirs, value in values.items()}


def reading(base: Config, *more: More) -> Config:
    """`config` of a relative: what `base` reads, and then `more`: options, or what reads them from (fields, options)."""

    def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
        options, has_head = base(fields, names)
        for one in more:
            options = {**options, **(one if isinstance(one, dict) else one(fields, options))}
        return options, has_head

    return config


def relative(of: Family, name: str, types: str, *read: Any, **others: Any) -> Family:
    """A row of a table: `of` with another name and model_types (spaces between them), what `reading` takes, and fields."""
    if read:
        others["config"] = read[0] if len(read) == 1 else reading(*read)
    return replace(of, name=name, types=tuple(types.split()), **others)


def tied_to(table: str, head: str = "lm_head") -> Callable[[ModelConfig], dict[str, str]]:
    """`ties` of files that repeat the table of embeddings as the head's matrix."""
    return lambda config: {f"{head}.weight": table} if config.tied_unembedding else {}


def flags(**names: str) -> Callable[[Fields, Options], Options]:
    """Reads options that are true or false: ours = the name of the field."""
    return lambda fields, options: {ours: fields.flag(name) for ours, name in names.items()}


def only(*ignored: str, **supported: Any) -> Callable[[Fields, Options], Options]:
    """Refuses every other value of fields that a family has; `ignored` are those that no forward reads."""

    def read(fields: Fields, options: Options) -> Options:
        for name, value in supported.items():
            fields.only(name, value)
        fields.ignore(*ignored)
        return {}

    return read


# Of a head that is not tied, whose two biases are tensors of their own.
SPARE_BIAS = N_("a second bias of the head, which the model does not add unless the head is tied to the embeddings")


def says_head(architecture: str) -> bool:
    """Whether a class of `transformers` of this name predicts tokens."""
    return architecture.endswith(_WITH_HEAD)


# Parameters that our layers have and a family's files do not: made so that they change nothing, or from the options.
def stored(parts: Sequence[Part], made: Container[str]) -> list[Part]:
    """The `parts` that a file has to contain: all whose parameters are not made."""
    return [part for part in parts if not all(target in made for target in part.targets)]


def fairseq_waves(n: int, width: int, padding: int | None, first: int) -> Tensor:
    """Rows `first`..first + n - 1 of fairseq's sinusoidal positions, in which the padding's row is 0.

    Row p is [sin(p f_0), ..., sin(p f_(w-1)), cos(p f_0), ..., cos(p f_(w-1))],  f_i = 10000^(-i / (w - 1)),  w = width/2

    The paper divides by w instead of w - 1.  Computed in float32, as the models were trained.

    Source: `SinusoidalPositionalEmbedding` of fairseq, and of the models of `transformers` that came from there.
    """
    half = width // 2
    frequency = torch.exp(torch.arange(half).float() * -(math.log(10_000) / max(half - 1, 1)))  # [half]
    row = torch.arange(first, first + n)  # [n]
    angle = row.float()[:, None] * frequency[None, :]  # [n, half]
    waves = torch.cat([angle.sin(), angle.cos()], dim=1)
    waves = torch.cat([waves, torch.zeros(n, width - 2 * half)], dim=1)  # an odd width ends in a 0
    return torch.where((row == (-1 if padding is None else padding))[:, None], 0.0, waves)  # [n, width]


# What decoders in the manner of GPT-2 have in common: what becomes of their tensors.
def tensors(
    config: ModelConfig,
    template: Mapping[str, Sequence[str]],
    table: str,
    positions: str,
    layer: str = "h.{}",
    final: str = "ln_f",
    *,
    skip: int = 0,
    no_bias: Sequence[str] = (),
    transposed: Sequence[str] = (),
) -> list[Part]:
    """What becomes of every tensor.

    `table`, `positions` and `final` are what tables and the last norm are called, `layer` is with what the names of the
    modules in `template` begin; the others are as in `Part` and `layers`.
    """
    name = "decoder.layers.{}"
    return [
        Part(f"{table}.weight", ("embedding.weight",)),
        Part(f"{positions}.weight", ("position_embedding.weight",), skip=skip),
        *layers(template, layer, name, config.n_decoder_layers, no_bias=no_bias, transposed=transposed),
        *(linear(final, "decoder.final_norm") if config.final_norm else []),
        *head(config),
    ]
