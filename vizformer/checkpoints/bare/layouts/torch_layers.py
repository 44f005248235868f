"""State dicts of modules made of `nn.TransformerEncoder` or `nn.Transformer`, with or without tables beside them.

PyTorch packs the three projections into one matrix, in_proj_weight = [W_Q; W_K; W_V] (rows), and numbers the norms in
the order in which the sublayers come.  Whether they stand before or after the sublayers, and what happens before the
first layer (scaling, positions) and around attention (masks), is code of which the weights keep nothing.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from vizformer.checkpoints.bare.layout import UNUSED_NORM, Layout, Plan, is_one, layers_of, matrix, no_norm_biases
from vizformer.checkpoints.bare.layouts.tables import Tables, alone, find_tables
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import Weights
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.tensors import questions
from vizformer.checkpoints.tensors.questions import Question, Value
from vizformer.checkpoints.tensors.tensor_map import Part, Shape, linear
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

NAMES = ("nn.TransformerEncoder", "nn.Transformer")
PROJECTIONS = tuple(f"W_{letter}" for letter in "QKV")


class Stack(NamedTuple):
    """The layers under one prefix: `theirs` has a place for the number, `norm` is the one after them, if any."""

    theirs: str
    n_layers: int
    cross: bool
    norm: str | None


def recognise(weights: Weights) -> Layout | None:
    stacks = _stacks(weights)
    if not stacks:
        return None
    first = stacks[0]
    d_model = matrix(weights, f"{first.theirs.format(0)}.self_attn.in_proj_weight")[1]
    both = len(stacks) == 2
    template = _template(weights, stacks)
    inside = {name for name in weights.tensors if _inside(name, stacks)} | template.keys()
    tables = find_tables(weights, d_model, inside, both=both)
    if both or first.norm:
        tables.final_norm = None  # it would be a second one
    options: Options = dict(
        d_model=d_model,
        d_ff=matrix(weights, f"{first.theirs.format(0)}.linear1.weight")[0],
        vocab_size=d_model,
        bias=f"{first.theirs.format(0)}.self_attn.in_proj_bias" in weights.tensors,
    )
    asked = [questions.n_heads(d_model), questions.NORM_ORDER, questions.ACTIVATION]
    asked += _asked({**options, **tables.options}, tables, both)
    last = tables.final_norm
    if last is not None and is_one(weights, f"{last}.weight", f"{last}.bias"):
        asked.append(questions.is_applied(shown(last)))

    def plan(answers: Mapping[str, Value]) -> Plan:
        chosen = dict(answers)
        source = chosen.pop("source_embedding", None)
        found = tables if source is None else find_tables(weights, d_model, inside, both=both, source=str(source))
        causal, beside = bool(chosen.pop("causal", False)), last if chosen.pop("final_norm", True) else None
        more, made = found.divided(d_model, chosen.pop("logit_scale", "nothing"))
        tied = bool(chosen.pop("tied", False))
        later, begun = found.begun(d_model, chosen.pop("first_position", 0), chosen.pop("scaled_rows", "tokens"))
        more |= later | questions.waves(chosen) | alone(chosen.pop("attention_over", "tokens"))
        names = ["encoder", "decoder"] if both else ["decoder" if causal else "encoder"]
        parts: list[Part] = []
        fills: dict[str, Callable[[Shape], Tensor]] = {}
        norms: dict[str, str] = {}
        for stack, name in zip(stacks, names, strict=True):
            norms |= _layers(parts, stack, name, bias=bool(options["bias"]))
            if (after := stack.norm or beside) is not None:  # a module of its own: made without a bias, or with one
                fills |= no_norm_biases(parts, weights, {after: f"{name}.final_norm"})
        fills |= no_norm_biases(parts, weights, norms)
        parts += found.parts
        if found.embedding is None:
            fills["embedding.weight"] = lambda shape: torch.eye(*shape)
        depths = {f"n_{name}_layers": stack.n_layers for stack, name in zip(stacks, names, strict=True)}
        return Plan(
            {
                **options,
                **depths,
                **found.options,
                **more,
                "final_norm": first.norm is not None or beside is not None,
                **chosen,
            },
            parts,
            found.predicts or tied,
            found.ties,
            {
                **found.unused,
                **template,
                **({} if beside == last else dict.fromkeys((f"{last}.weight", f"{last}.bias"), UNUSED_NORM)),
            },
            fills,
            (*_assumed(found, both, tied), *{str(note): note for note in template.values()}.values()),
            {**found.made, **made, **begun},
        )

    return Layout(NAMES[1] if both else NAMES[0], tuple(asked), plan, reads_only_ids=tables.embedding is None)


def _stacks(weights: Weights) -> list[Stack]:
    """The stacks, an encoder before a decoder."""
    found = layers_of(weights.tensors, r"(?P<prefix>(?:[\w.]*\.)?)(?P<index>\d{1,4})\.self_attn\.in_proj_weight")
    stacks = []
    for prefix, n_layers in found.items():
        if f"{prefix}0.linear1.weight" not in weights.tensors:
            continue  # a layer of somebody's own around PyTorch's attention
        cross = f"{prefix}0.multihead_attn.in_proj_weight" in weights.tensors
        norm = f"{prefix.removesuffix('layers.')}norm"
        has_norm = prefix.endswith("layers.") and f"{norm}.weight" in weights.tensors
        stacks.append(Stack(f"{prefix}{{}}", n_layers, cross, norm if has_norm else None))
    stacks.sort(key=lambda stack: stack.cross)
    kinds = [stack.cross for stack in stacks]
    if len(stacks) == 2 and (stacks[0].norm is None) != (stacks[1].norm is None):
        raise CheckpointError(
            "{file} has a final norm in only one of its two stacks, which VizFormer does not compute. "
            "Record the model while its own code runs: `vizformer --model FILE:FUNCTION`, or "
            "vf.wrap(model, tokenizer).",
            file=weights.where,
        )
    if stacks and kinds not in ([False], [False, True]):
        names = ", ".join(shown(stack.theirs.format(0)) for stack in stacks[:6])
        raise CheckpointError(
            "{file} has PyTorch's layers in an arrangement that does not open ({names}). Supported are one encoder, "
            "or an encoder and a decoder that reads it.",
            file=weights.where,
            names=names,
        )
    return stacks


def _template(weights: Weights, stacks: list[Stack]) -> dict[str, Message]:
    """The layer that nn.TransformerEncoder was given and copied: a module that its author kept, and that nothing reads."""
    found: dict[str, Message] = {}
    for name in weights.tensors:
        kept = re.fullmatch(r"(?P<path>[\w.]+)\.self_attn\.in_proj_weight", name)
        if kept is None or _inside(name, stacks):
            continue
        prefix = f"{kept['path']}."
        own = {n.removeprefix(prefix): s.shape for n, s in weights.tensors.items() if n.startswith(prefix)}
        for stack in stacks:
            first = f"{stack.theirs.format(0)}."
            layer = {n.removeprefix(first): s.shape for n, s in weights.tensors.items() if n.startswith(first)}
            if own == layer:
                note = N_(
                    "{name} is taken for the layer that the others were copied from (nn.TransformerEncoder copies the layer "
                    "that it is given): it is not used",
                    name=shown(kept["path"]),
                )
                found |= {f"{prefix}{inner}": note for inner in own}
                break
    return found


def _inside(name: str, stacks: list[Stack]) -> bool:
    for stack in stacks:
        prefix = re.escape(stack.theirs.removesuffix("{}"))
        if re.match(rf"{prefix}\d+\.", name) or (stack.norm and name.startswith(f"{stack.norm}.")):
            return True
    return False


def _asked(options: Options, tables: Tables, both: bool) -> list[Question]:
    """The questions that the weights leave open."""
    asked = [questions.MASKED if both else questions.CAUSAL]
    if tables.open_pair is not None:
        asked.append(questions.source_embedding(tables.open_pair))
    if tables.embedding is not None:
        asked += tables.scaled()
    if "positions" not in tables.options:
        odd = int(options["d_model"]) % 2  # sine and cosine come in pairs
        asked.append(replace(questions.POSITIONS, choices=("none",), usual="none") if odd else questions.POSITIONS)
    asked += [*tables.first_position(), questions.NORM_EPS]
    if not both:
        asked.append(questions.ATTENTION_OVER)
    asked += tables.of_logits()
    if "max_positions" not in tables.options:
        asked.append(questions.MAX_POSITIONS)
    if not both:
        return asked
    sizes = [int(options["vocab_size"]), *([] if tables.open_pair is None else [int(options["source_vocab_size"])])]
    return [*asked, *questions.marks(max(sizes))]


def _layers(parts: list[Part], stack: Stack, name: str, *, bias: bool) -> dict[str, str]:
    """Adds the parts of a stack's layers; returns their norms, theirs -> ours."""
    kinds = ("weight", "bias") if bias else ("weight",)
    attentions = {"self_attn": "self_attention", **({"multihead_attn": "cross_attention"} if stack.cross else {})}
    ours = ["self_norm", *(["cross_norm"] if stack.cross else []), "feedforward_norm"]
    norms: dict[str, str] = {}
    for index in range(stack.n_layers):
        theirs, target = stack.theirs.format(index), f"{name}.layers.{index}"
        for attention, own in attentions.items():
            for kind in kinds:
                packed = tuple(f"{target}.{own}.{projection}.{kind}" for projection in PROJECTIONS)
                parts.append(Part(f"{theirs}.{attention}.in_proj_{kind}", packed))
            parts += linear(f"{theirs}.{attention}.out_proj", f"{target}.{own}.W_O", bias=bias)
        parts += linear(f"{theirs}.linear1", f"{target}.feedforward.W_in", bias=bias)
        parts += linear(f"{theirs}.linear2", f"{target}.feedforward.W_out", bias=bias)
        norms |= {f"{theirs}.norm{number}": f"{target}.{norm}" for number, norm in enumerate(ours, start=1)}
    return norms


def _assumed(tables: Tables, both: bool, tied: bool) -> list[Message]:
    assumed = list(tables.assumptions)
    if both:
        assumed.append(N_("a position of the decoder sees all of the encoder's output"))
    return assumed + tables.of_ends(tied)
