"""A model as a drawing: its boxes in the order of the data, each with its shapes and its parameters.

    boxes = architecture(model, n=7)
    sum(box.parameters for box in boxes) == sum(p.numel() for p in model.parameters())      # always

A layer is drawn once and counted `copies` times.  A table that serves in two places is counted in the first of them.
The order is that of the data: encoder, then decoder, then the prediction.
"""

from dataclasses import dataclass
from math import prod
from typing import Literal

from torch import nn

from vizformer.config import ModelConfig
from vizformer.model import Transformer
from vizformer.model.block import Block, Stack

Kind = Literal[
    "tokens",
    "embedding",
    "positions",
    "segments",
    "norm",
    "attention",
    "cross",
    "mask",
    "rotation",
    "alibi",
    "relative",
    "feedforward",
    "add",
    "add_norm",
    "transform",
    "unembedding",
    "logit_bias",
    "softmax",
]
Section = Literal["encoder", "decoder", "prediction"]
Dims = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Box:
    key: str  # its name, "encoder.attention" or "decoder.cross_norm"; each once in a drawing
    kind: Kind  # what it is; boxes of a kind do the same
    section: Section  # the stack it belongs to, or the prediction above them
    repeated: bool = False
    # the key of the attention it works in (masks, rotations, biases); "" where it has a place of its own
    inside: str = ""
    skip: str = ""  # the key of the box whose output is added here, past what is between ("" where nothing is)
    # inputs, output: shapes, without the batch; [n_heads, n_q, n_k] are the attention weights
    inputs: tuple[Dims, ...] = ()
    output: Dims
    # where its parameters are, as an attribute of the model: "encoder.layers[0].self_attention"; "" for none
    module: str = ""
    tensors: tuple[tuple[str, Dims], ...] = ()  # name and shape of each, as PyTorch keeps them ([out, in])
    copies: int = 1  # how often the model has it
    shared: bool = False  # whether these are counted in another box, where they serve first

    @property
    def copy(self) -> int:
        """The parameters of one copy; 0 where they are counted in another box."""
        return 0 if self.shared else sum(prod(shape) for _, shape in self.tensors)

    @property
    def parameters(self) -> int:
        return self.copy * self.copies


def architecture(model: Transformer, n: int, target: int = 0) -> tuple[Box, ...]:
    """The boxes of `model` for a text of `n` tokens and, for an encoder-decoder, `target` tokens in its decoder."""
    config = model.config
    boxes: list[Box] = []
    if model.encoder is not None:
        boxes += _stack(model, model.encoder, "encoder", n, memory=0, first=True)
    if model.decoder is not None:
        length = target if model.encoder is not None else n
        memory = n if model.encoder is not None else 0
        boxes += _stack(model, model.decoder, "decoder", length, memory=memory, first=model.encoder is None)
        n = length
    return (*boxes, *_prediction(model, config, n))


def _stack(model: Transformer, stack: Stack, section: Section, n: int, memory: int, first: bool) -> list[Box]:
    config, wide = model.config, (n, model.config.d_model)
    boxes = [Box(key=f"{section}.tokens", kind="tokens", section=section, output=(n,))]

    def add(name: str, kind: Kind, module: nn.Module | None, path: str = "", *, shared: bool = False) -> None:
        boxes.append(
            Box(
                key=f"{section}.{name}",
                kind=kind,
                section=section,
                inputs=(boxes[-1].output,),
                output=wide,
                module=path if module is not None else "",
                tensors=_tensors(module),
                shared=shared,
            )
        )

    if model.source_embedding is not None and section == "encoder":
        add("embedding", "embedding", model.source_embedding, "source_embedding")
    else:
        shared = not first and model.source_embedding is None
        add("embedding", "embedding", model.embedding, "embedding", shared=shared)
    if model.segment_embedding is not None:
        add("segments", "segments", model.segment_embedding, "segment_embedding", shared=not first)
    if config.positions == "sinusoidal":
        add("positions", "positions", None)
    decoders = "decoder_" if config.stack_inputs == "own" and section == "decoder" else ""
    name = f"{decoders}position_embedding"
    if config.positions == "learned":
        add("positions", "positions", getattr(model, name), name, shared=not (first or decoders))
    if model.embedding_norm is not None:
        path = f"{decoders}embedding_norm"
        add("embedding_norm", "norm", getattr(model, path), path, shared=not (first or decoders))
    boxes += _layer(config, stack, section, n, memory, boxes[-1].key)
    if stack.final_norm is not None:
        add("final_norm", "norm", stack.final_norm, f"{section}.final_norm")
    return boxes


def _layer(config: ModelConfig, stack: Stack, section: Section, n: int, memory: int, before: str) -> list[Box]:
    """The boxes of one layer; the stream comes from the box `before` it."""
    wide = (n, config.d_model)
    block = stack.layers[0]
    assert isinstance(block, Block)
    boxes: list[Box] = []

    def add(name: str, kind: Kind, module: str, *inputs: Dims, skip: str = "") -> None:
        boxes.append(
            Box(
                key=f"{section}.{name}",
                kind=kind,
                section=section,
                repeated=True,
                inputs=inputs or (wide,),
                output=wide,
                module=module and f"{section}.layers[0].{module}",
                tensors=_tensors(getattr(block, module) if module else None),
                copies=len(stack.layers),
                skip=skip,
            )
        )

    def sublayer(name: str, kind: Kind, of: str, module: str, *inputs: Dims) -> None:
        norm = f"{of}_norm"
        stream = next((box.key for box in reversed(boxes) if not box.inside), before)
        around = block.around(of)
        if around.before is not None:
            add(f"{name}_norm", "norm", norm)
        add(name, kind, module, *inputs)
        if kind == "attention":
            boxes.extend(_inside(config, stack, section, n))
        if around.after is not None and around.adds:
            add(f"{name}_norm", "add_norm", norm, wide, wide, skip=stream)
        elif around.after is not None:
            add(f"{name}_norm", "norm", norm)
        elif around.adds:
            add(f"{name}_add", "add", "", wide, wide, skip=stream)

    sublayer("attention", "attention", "self", "self_attention")
    if block.cross_attention is not None:
        sublayer("cross", "cross", "cross", "cross_attention", wide, (memory, config.d_model))
    sublayer("feedforward", "feedforward", "feedforward", "feedforward")
    return boxes


def _inside(config: ModelConfig, stack: Stack, section: Section, n: int) -> list[Box]:
    """What works inside a self-attention: on its queries and keys, or on its scores."""
    found: list[Box] = []

    def add(kind: Kind, output: Dims, module: nn.Module | None = None, path: str = "") -> None:
        found.append(
            Box(
                key=f"{section}.{kind}",
                kind=kind,
                section=section,
                repeated=True,
                inside=f"{section}.attention",
                inputs=(output,),
                output=output,
                module=path,
                tensors=_tensors(module),
            )
        )

    scores = (config.n_heads, n, n)
    if config.positions == "rope":
        add("rotation", (config.n_heads, n, config.d_head))
    if config.positions == "alibi":
        add("alibi", scores)
    if config.has_relative_bias:
        add("relative", scores, stack.relative_bias, f"{section}.relative_bias")
    if section == "decoder" or config.sliding_window is not None:
        add("mask", (n, n))
    return found


def _prediction(model: Transformer, config: ModelConfig, n: int) -> list[Box]:
    wide, scores = (n, config.d_model), (n, config.vocab_size)
    table = model.embedding if model.unembedding is None else model.unembedding
    boxes = [
        Box(
            key="prediction.unembedding",
            kind="unembedding",
            section="prediction",
            inputs=(wide,),
            output=scores,
            module="embedding" if model.unembedding is None else "unembedding",
            tensors=_tensors(table),
            shared=model.unembedding is None,
        ),
        Box(key="prediction.softmax", kind="softmax", section="prediction", inputs=(scores,), output=scores),
    ]
    if model.logit_bias is not None:
        bias = Box(
            key="prediction.bias",
            kind="logit_bias",
            section="prediction",
            inputs=(scores,),
            output=scores,
            tensors=(("logit_bias", tuple(model.logit_bias.shape)),),
        )
        boxes.insert(1, bias)
    if model.prediction is not None:
        box = Box(
            key="prediction.transform",
            kind="transform",
            section="prediction",
            inputs=(wide,),
            output=wide,
            module="prediction",
            tensors=_tensors(model.prediction),
        )
        boxes.insert(0, box)
    return boxes


def _tensors(module: nn.Module | None) -> tuple[tuple[str, Dims], ...]:
    if module is None:
        return ()
    return tuple((name, tuple(parameter.shape)) for name, parameter in module.named_parameters())
