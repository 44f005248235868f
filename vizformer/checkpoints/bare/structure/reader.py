"""State dicts of models that somebody wrote: a layout for all of them, found by role.

Attentions come first (their words are the most alike), then the layers around them, what else is in a layer, and what
lies beside the layers.  What no tensor tells is a question; a tensor without a role keeps the model from opening.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from vizformer.checkpoints.bare.layout import Layout, Plan, of_losses
from vizformer.checkpoints.bare.layouts.tables import ANSWER, Tables, find_tables
from vizformer.checkpoints.bare.structure import arithmetic, around, asked, attentions, stacks
from vizformer.checkpoints.bare.structure.arithmetic import Sizes
from vizformer.checkpoints.bare.structure.block import Block, norms_of, read
from vizformer.checkpoints.bare.structure.made import Made, with_made
from vizformer.checkpoints.bare.structure.names import Module, modules
from vizformer.checkpoints.bare.structure.parts import Layers, Reading, add
from vizformer.checkpoints.bare.structure.stacks import Stack
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import Weights
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.tensors import questions
from vizformer.checkpoints.tensors.questions import Question, Value
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

NAME = "hand-written"


@dataclass(frozen=True)
class Found:
    """All that was found in a file, before anything is asked."""

    weights: Weights
    modules: Mapping[str, Module]
    stacks: tuple[Stack, ...]
    blocks: tuple[Block, ...]
    sizes: Sizes
    turned: Mapping[bool, bool | None]
    norms: around.Norms
    buffers: around.Buffers
    made: Mapping[str, Made]
    inside: frozenset[str]
    segments: str

    @property
    def both(self) -> bool:
        return len(self.stacks) == 2

    @property
    def biases(self) -> tuple[bool, bool, bool]:
        """Whether projections to queries, keys and values, those after the heads, and the networks have biases."""
        qkv = out = inner = False
        for stack, block in zip(self.stacks, self.blocks, strict=True):
            layer = stack.layers[0]
            for parts in block.attentions.values():
                qkv |= any(layer[name].bias is not None for name in parts.attention.inside)
                out |= any(layer[name].bias is not None for name in parts.out)
            inner |= any(layer[name].bias is not None for name in block.feedforward.values())
        return qkv, out, inner


def recognise(weights: Weights) -> Layout | None:
    """The layout, if there is attention in the file.

    Raises:
        CheckpointError: an arrangement that VizFormer's models do not have; says which tensors.
    """
    buffers = around.buffers(weights)
    named = {name: stored for name, stored in weights.tensors.items() if name not in buffers.unused}
    found = modules(named)
    attending = attentions.find(found)
    if not attending:
        return None
    ordered = _ordered(stacks.find(found, attending, weights.where), weights.where)
    return _layout(_found(weights, found, ordered, buffers))


def _ordered(found: list[Stack], file: str) -> tuple[Stack, ...]:
    """An encoder before the decoder that reads it, or one stack alone."""
    ordered = sorted(found, key=lambda stack: len(stack.attentions))
    kinds = [len(stack.attentions) for stack in ordered]
    if kinds in ([1], [1, 2]):
        return tuple(ordered)
    raise CheckpointError(
        N_(
            "{file} has layers in an arrangement that does not open: {stacks}. Supported are one stack with one "
            "attention in a layer, or an encoder of such layers and a decoder with two attentions in a layer, one of "
            "which reads the encoder.",
            file=file,
            stacks=", ".join(
                f"{stack.shown} ({len(stack.layers)} × {', '.join(shown(a.path) for a in stack.attentions)})"
                for stack in ordered[:6]
            ),
        )
    )


def _found(weights: Weights, found: Mapping[str, Module], ordered: tuple[Stack, ...], buffers: around.Buffers) -> Found:
    file = weights.where
    used = {module.path for stack in ordered for layer in stack.layers for module in layer.values() if stack.counted}
    width = arithmetic.width(found, ordered, [*used, *(p for s in ordered for a in s.attentions for p in a.inside)])
    blocks = tuple(read(stack, width, file) for stack in ordered)
    for stack, block in zip(ordered, blocks, strict=True):
        if not stack.counted:  # whatever else lies there is beside the layer
            used |= {stack.layers[0][name].path for name in _roles(block)}
    raw = arithmetic.raw_is_turned(ordered, blocks, width, file)
    turned: dict[bool, bool | None] = {False: arithmetic.is_conv(found, ordered, width), True: raw}
    sizes = arithmetic.sizes(ordered, blocks, width, {kind: bool(said) for kind, said in turned.items()}, file)
    norms = around.norms(found, ordered, used, width, file)
    used |= {module.path for module in norms.modules()}
    made: dict[str, Made] = {}
    if (front := around.one_hot(found, used, width)) is not None:
        made[f"{front[0].path}{around.ONE_HOT}"] = front[1]
        used.add(front[0].path)
    inside = {name for path in used for name in found[path].names} | buffers.unused.keys()
    segments = around.segments(weights, [name for name in weights.tensors if name not in inside], width)
    return Found(
        weights, found, ordered, blocks, sizes, turned, norms, buffers, made, frozenset({*inside, segments}), segments
    )


def _roles(block: Block) -> list[str]:
    names = [*block.norms.values(), *(block.pair or ()), *block.feedforward.values()]
    for parts in block.attentions.values():
        names += [*parts.attention.inside, *parts.out, *filter(None, (parts.q_norm, parts.k_norm))]
    return names


def _tables(found: Found, source: str | None = None) -> Tables:
    view = with_made(found.weights, found.made)
    inside = found.inside - {name for recipe in found.made.values() for name in recipe.sources}
    return find_tables(view, found.sizes.width, inside, both=found.both, source=source)


def _layout(found: Found) -> Layout:
    tables = _tables(found)
    kind = _norm_kind(found)
    open_questions = _asked(found, tables, kind)

    def plan(answers: Mapping[str, Value]) -> Plan:
        return _plan(found, kind, dict(answers))

    return Layout(NAME, tuple(open_questions), plan, tables.reshaped, tables.embedding is None)


def _norm_kind(found: Found) -> str | Question:
    """The norm of the layers, where names or biases say it, else the question which it is.

    A norm that its author wrote may divide by another deviation than nn.LayerNorm; names a_2 and b_2 are those of code
    that does.
    """
    layer, block = found.stacks[0].layers[0], found.blocks[0]
    norms = [layer[name] for name in (*block.norms.values(), *(block.pair or ()))] + found.norms.modules()
    if any(module.bias is not None for module in norms):
        if not any(module.own for module in norms):
            return "layer_norm"
        leaves = {name.rpartition(".")[2] for module in norms for name in module.names}
        return replace(asked.OWN_NORM, usual="deviation_norm") if leaves == {"a_2", "b_2"} else asked.OWN_NORM
    return "rms_norm" if any("rms" in module.path.lower() for module in norms) else asked.NORM


def _asked(found: Found, tables: Tables, kind: str | Question) -> list[Question]:
    sizes = found.sizes
    heads = asked.heads(sizes.queries, sizes.keys)
    normed = any(block.attentions["self_attention"].q_norm for block in found.blocks)
    open_questions: list[Question] = []
    if sizes.heads is None and not normed:
        open_questions.append(heads)
    order = questions.NORM_ORDER
    open_questions.append(order if sizes.inner else replace(order, choices=("pre",), usual="pre"))
    if isinstance(kind, Question):
        open_questions.append(kind)
    if sizes.inner:
        open_questions.append(questions.ACTIVATION)
    if not found.both and not found.buffers.causal:
        open_questions.append(questions.CAUSAL)
    fused = [p.letters for block in found.blocks for a in block.attentions.values() for p in a.attention.projections]
    if any(len(letters) > 1 for letters in fused) and sizes.keys == sizes.queries:
        open_questions.append(_rows(found))
    if found.turned[True] is None:
        open_questions.append(asked.MATRICES)
    if pair := found.blocks[0].pair:
        if not all(map(ANSWER.fullmatch, pair)):  # they could be written into no link
            raise CheckpointError(
                N_(
                    "{file} has two norms in a layer, {names}, and nothing says which belongs to which sublayer. Rename "
                    "them (norm1, norm2).",
                    file=found.weights.where,
                    names=", ".join(map(shown, pair)),
                )
            )
        open_questions.append(asked.first_norm(pair))
    if found.norms.open:
        open_questions.append(asked.NORM_PLACE)
    if tables.open_pair is not None:
        open_questions.append(questions.source_embedding(tables.open_pair))
    if tables.embedding is not None and not found.made:
        open_questions.append(questions.SCALED)
    if "positions" not in tables.options:
        open_questions.append(
            asked.positions(
                sizes.width,
                both=found.both,
                heads=[int(str(h)) for h in heads.choices] if sizes.heads is None else [sizes.heads],
                found=found.buffers.pairs,
                theta=found.buffers.theta is not None,
            )
        )
        if found.buffers.theta is None and "rope" in open_questions[-1].choices:
            open_questions.append(asked.ROPE_THETA)
    open_questions += [questions.NORM_EPS, asked.SCALE]
    if "max_positions" not in tables.options:
        open_questions.append(questions.MAX_POSITIONS)
    if found.both and tables.embedding is not None:
        rows = [int(tables.options["vocab_size"]), int(tables.options.get("source_vocab_size") or 0)]
        open_questions += questions.marks(max(rows))
    return open_questions


def _rows(found: Found) -> Question:
    """Usual where the name is that of code that is known to lay out its rows in that way."""
    names = [a.attention.inside[0] for block in found.blocks for a in block.attentions.values()]
    known = {name.rpartition(".")[2] for name in names}
    usual = "q_k_v" if known <= {"c_attn", "in_proj", "to_qkv", "qkv", "Wqkv"} else None
    return replace(asked.ROWS, usual=usual)


def _plan(found: Found, kind: str | Question, answers: dict[str, Value]) -> Plan:
    sizes, norms = found.sizes, found.norms
    source = answers.pop("source_embedding", None)
    tables = _tables(found, None if source is None else str(source))
    causal = bool(answers.pop("causal", bool(found.buffers.causal)))
    names = ["encoder", "decoder"] if found.both else ["decoder" if causal else "encoder"]
    norm = str(answers.pop("norm", kind))
    first_norm, place = answers.pop("first_norm", None), answers.pop("norm_place", None)
    before = norms.first or (norms.open if place == "first" else {})
    after = norms.last or (norms.open if place == "last" else {})
    options: Options = {
        "d_model": sizes.width,
        "vocab_size": sizes.width,
        "d_ff": sizes.inner or 1,
        "feedforward": "gated" if "W_gate" in found.blocks[0].feedforward else "plain",
        "norm": norm,
        "final_norm": bool(after),
        "embedding_norm": bool(before),
        "n_segments": found.weights.tensors[found.segments].shape[0] if found.segments else 0,
        **_biases(found.biases),
        **tables.options,
    }
    n_heads = _n_heads(found, answers)
    options |= {"n_heads": n_heads, **_head_options(sizes, n_heads), **_score_scale(sizes, n_heads, answers)}
    options |= _positions(found, n_heads, answers)
    how = Reading(
        sizes,
        n_heads,
        {False: bool(found.turned[False]), True: found.turned[True] or answers.pop("matrices", None) == "x_W"},
        answers.pop("qkv_rows", None) == "by_head",
        options.pop("pairs", False),
        *_our_biases(found.biases),
        norm != "rms_norm",
    )
    layers = Layers(made=dict(found.made))
    for stack, block, name in zip(found.stacks, found.blocks, names, strict=True):
        chosen = block.norms
        if block.pair is not None and first_norm is not None:
            one, other = block.pair
            order = (one, other) if first_norm == one else (other, one)
            chosen = dict(zip(norms_of(block.attentions, bool(block.feedforward)), order, strict=True))
        add(layers, stack, block, chosen, name, how)
    for number, name in enumerate(names):
        if number in after:
            layers.norm(after[number], f"{name}.final_norm", sizes.width, shifted=how.shifted)
        if number in before:
            own = "decoder_embedding_norm" if number else "embedding_norm"
            layers.norm(before[number], own, sizes.width, shifted=how.shifted)
    if found.both and before:
        options["stack_inputs"] = "own"
    if found.segments:
        layers.parts.append(Part(found.segments, ("segment_embedding.weight",)))
    fills = layers.fills
    if tables.embedding is None:
        fills["embedding.weight"] = lambda shape: torch.eye(*shape)
    depths = {f"n_{name}_layers": len(stack.layers) for stack, name in zip(found.stacks, names, strict=True)}
    return Plan(
        {**options, **depths, **answers},
        layers.parts + tables.parts,
        tables.predicts,
        tables.ties,
        {**found.buffers.unused, **tables.unused, **of_losses(found.weights)},
        tables.unplaced,
        fills,
        tuple(_assumed(found, tables, norm, before, after)),
        layers.made,
    )


def _n_heads(found: Found, answers: dict[str, Value]) -> int:
    said = answers.pop("n_heads", None)
    if said is not None:
        return int(said)
    if found.sizes.heads is not None:
        return found.sizes.heads
    norm = found.blocks[0].attentions["self_attention"].q_norm
    return max(1, found.sizes.queries // found.stacks[0].layers[0][norm].shape[0])


def _head_options(sizes: Sizes, n_heads: int) -> Options:
    d_head = max(1, sizes.queries // n_heads)
    options: Options = {}
    if sizes.queries != sizes.width:
        options["head_dim"] = d_head
    if sizes.keys != sizes.queries:
        options["n_kv_heads"] = sizes.keys // d_head
    return options


def _score_scale(sizes: Sizes, n_heads: int, answers: dict[str, Value]) -> Options:
    said = answers.pop("score_scale", None)
    if said == "root_of_d_model" and n_heads > 1:
        return {"attention_scale": sizes.width**-0.5}
    return {"attention_scale": 1.0} if said == "nothing" else {}


def _positions(found: Found, n_heads: int, answers: dict[str, Value]) -> Options:
    options: Options = {}
    said, theta = answers.get("positions"), answers.pop("rope_theta", None)
    if said in ("rope", "rope_pairs") and theta is not None:
        options["rope_theta"] = float(theta)
    if said == "rope_pairs":
        answers["positions"] = "rope"
        options["pairs"] = True
    if said in ("rope", "rope_pairs") and found.buffers.theta is not None:
        options["rope_theta"] = found.buffers.theta
        if found.buffers.turned != found.sizes.queries // n_heads:
            options["rope_dims"] = found.buffers.turned
    options["qk_norm"] = bool(found.blocks[0].attentions["self_attention"].q_norm)
    return options


def _our_biases(found: tuple[bool, bool, bool]) -> tuple[bool, bool, bool]:
    """Those that our block has: where the result has a bias, queries, keys and values have one, which may be 0."""
    qkv, out, inner = found
    return qkv or out, out, inner


def _biases(found: tuple[bool, bool, bool]) -> Options:
    qkv, out, inner = _our_biases(found)
    if qkv == out:
        return {"bias": inner, "attention_bias": "same" if inner == qkv else ("all" if qkv else "none")}
    return {"bias": inner, "attention_bias": "qkv"}


def _assumed(
    found: Found, tables: Tables, norm: str, before: Mapping[int, Module], after: Mapping[int, Module]
) -> list[Message]:
    """How the tensors were taken, as far as that does not follow from their shapes alone."""
    assumed: list[Message] = [message for block in found.blocks for message in block.assumed]
    stack, block = found.stacks[-1], found.blocks[-1]
    parts, layer = block.attentions["self_attention"], stack.layers[0]
    assumed.insert(0, _roles_said(layer, block))
    if parts.attention.numbered:
        assumed.append(N_("the matrices that only numbers tell apart are query, key, value and output, in this order"))
    if found.buffers.causal:
        assumed.append(
            N_(
                "every position sees only those before it: {name} holds such a mask",
                name=shown(found.buffers.causal),
            )
        )
    if found.both:
        assumed.append(N_("a position of the decoder sees those before it and all of the encoder's output"))
    if not block.feedforward:
        assumed.append(N_("the layers have no feed-forward network: the one shown is made of zeros and adds nothing"))
    if not all(parts.out for block in found.blocks for parts in block.attentions.values()):
        assumed.append(N_("attention has no projection after its heads: the one shown passes on what the heads made"))
    if not any(block.norms or block.pair for block in found.blocks):
        assumed.append(
            N_(
                "the layers have no weights of norms: norms without weights are assumed. A model without any norm "
                "computes something else"
            )
        )
    for module in after.values():
        assumed.append(N_("{name} is the norm after the last layer", name=shown(module.path)))
    for module in before.values():
        assumed.append(N_("{name} is a norm after the embeddings", name=shown(module.path)))
    if found.segments:
        assumed.append(
            N_(
                "{name} is the table of segments, of which row 0 is added to the embeddings of a text without parts",
                name=shown(found.segments),
            )
        )
    for name, recipe in found.made.items():
        if name.endswith(around.ONE_HOT):
            assumed.append(
                N_(
                    "{name} reads every token as a vector with one 1: its columns are taken for the embeddings of tokens. "
                    "Where the model reads other numbers, what is shown is not its input",
                    name=shown(recipe.sources[0]),
                )
            )
    qkv, out, __ = found.biases
    if out and not qkv:
        assumed.append(N_("queries, keys and values have no biases in the file: those shown are 0"))
    assumed += tables.assumptions
    if tables.embedding is None:
        assumed.append(
            N_(
                "the file has no table of embeddings: token id i is read as the vector with 1 at place i and "
                "0 elsewhere, and logits mean nothing"
            )
        )
    elif not tables.predicts:
        assumed.append(
            N_(
                "the file has no head that predicts tokens: logits are computed with the embedding table and mean nothing"
            )
        )
    return assumed


def _roles_said(layer: Mapping[str, Module], block: Block) -> Message:
    """The roles as they were read, in the first layer of the last stack."""
    own = block.attentions["self_attention"]

    def named(names: Sequence[str]) -> str:
        return shown(layer[names[0]].path) if names else "-"

    said = {letter: p.modules for p in own.attention.projections for letter in p.letters}
    return N_(
        "read by role: query {q}, key {k}, value {v}, output {o}; network {up}, {down}; norms {norms}",
        q=named(said["q"]),
        k=named(said["k"]),
        v=named(said["v"]),
        o=named(own.out),
        up=named([block.feedforward["W_in"]]) if block.feedforward else "-",
        down=named([block.feedforward["W_out"]]) if block.feedforward else "-",
        norms=", ".join(shown(layer[name].path) for name in (*block.norms.values(), *(block.pair or ()))) or "-",
    )
