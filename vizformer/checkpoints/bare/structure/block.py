"""What the modules of one layer are: attention, its output, norms, the feed-forward network, masks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vizformer.checkpoints.bare.structure.attentions import Attention, Projection
from vizformer.checkpoints.bare.structure.names import Module, natural, numbers, steps, under, words
from vizformer.checkpoints.bare.structure.stacks import Stack
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

_CROSS = {"cross", "src", "enc", "encoder", "memory", "context", "mem", "encdec", "source", "crossattn", "inter"}
_SELF = {"self", "masked", "mask", "slf", "dec", "decoder", "sa", "selfattn", "tgt", "trg", "causal"}
_OUT = re.compile(
    r"(?:w|fc|to|linear|lin|proj|attn|att|c|final|weight|dense)?_?(?:o|out|output|outs|unify\w*|concat|merge|combine|proj|projection|c_proj)"
    r"_?(?:w|proj|projection|lin|linear|layer|weight|fc|net|dense)?\d?",
    re.IGNORECASE,
)
_OUT_TOO = re.compile(r"fc|linear|dense|lin|ff|w|linear_layer|final_linear|fc_layer", re.IGNORECASE)
_FEEDFORWARD = {
    "ff",
    "ffn",
    "mlp",
    "feed",
    "feedforward",
    "forward",
    "ffw",
    "fwd",
    "ffwd",
    "fc",
    "position",
    "positionwise",
    "pos",
    "net",
    "pff",
}
_ATTENTION = {"attn", "att", "attention", "mha", "sa", "self", "heads", "attns", "attentions", "multihead", "mh"}
_FIRST = re.compile(
    r"(?:w|fc|linear|lin|proj|dense|layer)?_?(?:in|up|expand|hidden|intermediate|inner|c_fc|fc_in|gate)_?(?:proj|linear|layer|\w*)?"
)
_LAST = re.compile(
    r"(?:w|fc|linear|lin|c|dense|layer)?_?(?:out|output|down|contract|proj|squeeze)_?(?:proj|linear|layer|\w*)?"
)


@dataclass(frozen=True)
class AttentionParts:
    """An attention: names of modules inside the layer.

    Attributes:
        attention: the projections.
        out: what makes the result; a module for every head, or none.
        q_norm, k_norm: norms of single queries and keys.
    """

    attention: Attention
    out: tuple[str, ...] = ()
    q_norm: str = ""
    k_norm: str = ""


@dataclass(frozen=True)
class Block:
    """The roles of one layer's modules, by their names inside of it.

    Attributes:
        attentions: "self_attention" and, in a decoder that reads an encoder, "cross_attention".
        norms: "self_norm", "cross_norm", "feedforward_norm" -> module; empty where none has weights.
        pair: two norms of which nothing says which is the first.
        feedforward: "W_in", "W_out" and maybe "W_gate" -> module; empty where there is no such network.
        assumed: how names were read that could be read in another way.
    """

    attentions: dict[str, AttentionParts]
    norms: dict[str, str]
    pair: tuple[str, str] | None = None
    feedforward: dict[str, str] = field(default_factory=dict)
    assumed: tuple[Message, ...] = ()

    @property
    def sublayers(self) -> list[str]:
        return norms_of(self.attentions, bool(self.feedforward))


def norms_of(attentions: Mapping[str, object], feeds: bool) -> list[str]:
    """The norms that belong to the sublayers, in order."""
    found = [name.replace("_attention", "_norm") for name in attentions]
    return [*found, "feedforward_norm"] if feeds else found


def read(stack: Stack, width: int, file: str) -> Block:
    """The roles in the first layer; what has none is left for the matching to name.

    Raises:
        CheckpointError: roles that neither names nor shapes tell apart.
    """
    inner = {module.path: name for name, module in stack.layers[0].items()}
    modules = dict(stack.layers[0])
    assumed: list[Message] = []
    attentions: dict[str, AttentionParts] = {}
    ordered = _self_and_cross(stack.attentions, file, assumed)
    taken: set[str] = set()
    for attention in ordered.values():
        taken |= {inner[path] for path in attention.inside}
    for name, attention in ordered.items():
        place = ".".join(steps(attention.path)[len(stack.prefix) + (1 if stack.counted else 0) :])
        own = Attention(
            place,
            tuple(Projection(p.letters, tuple(inner[m] for m in p.modules)) for p in attention.projections),
            attention.by_head,
            attention.numbered,
            inner.get(attention.out, ""),
        )
        out = _out(own, modules, taken, len(ordered) == 1)
        taken |= set(out)
        q_norm, k_norm = _qk_norms(own, modules, taken, width)
        taken |= {norm for norm in (q_norm, k_norm) if norm}
        attentions[name] = AttentionParts(own, out, q_norm, k_norm)
    feedforward = _feedforward(modules, taken, width, file)
    if not feedforward or not all(parts.out for parts in attentions.values()):
        attentions = _out_of_the_layer(attentions, modules, taken | set(feedforward.values()), width)
        if not feedforward:
            taken |= {name for parts in attentions.values() for name in parts.out}
            feedforward = _feedforward(modules, taken, width, file)
    norms, pair = _norms(modules, taken, attentions, feedforward, width, file, stack.counted)
    return Block(attentions, norms, pair, feedforward, tuple(assumed))


def _self_and_cross(attentions: Sequence[Attention], file: str, assumed: list[Message]) -> dict[str, Attention]:
    """Which attention reads the layer's own rows and which those of the encoder."""
    if len(attentions) == 1:
        return {"self_attention": attentions[0]}
    if len(attentions) > 2:
        raise CheckpointError(
            N_(
                "{file} has layers with {n} attentions ({names}): one opens, or one and another that reads an encoder.",
                file=file,
                n=len(attentions),
                names=", ".join(shown(attention.path) for attention in attentions[:4]),
            )
        )
    one, other = attentions
    first, second = _differing(one.path, other.path)
    sides = [bool(words(name) & _CROSS) - bool(words(name) & _SELF) for name in (first, second)]
    both = [bool(words(name) & _CROSS) and bool(words(name) & _SELF) for name in (first, second)]
    sides = [1 if mixed else side for side, mixed in zip(sides, both, strict=True)]  # dec_enc_attn
    if sides[0] == sides[1]:
        counted = [numbers(name) for name in (first, second)]
        if counted[0] == counted[1]:
            raise CheckpointError(
                N_(
                    "{file} has two attentions in a layer, {first} and {second}, and nothing says which of them reads the "
                    "encoder. Rename them (self, cross).",
                    file=file,
                    first=shown(one.path),
                    second=shown(other.path),
                )
            )
        sides = [0, 1] if counted[0] < counted[1] else [1, 0]
    own, cross = (one, other) if sides[0] < sides[1] else (other, one)
    assumed.append(
        N_(
            "{cross} reads the encoder's output, {own} the decoder's own rows",
            cross=shown(cross.path),
            own=shown(own.path),
        )
    )
    return {"self_attention": own, "cross_attention": cross}


def _differing(first: str, second: str) -> tuple[str, str]:
    one, other = first.split("."), second.split(".")
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return ".".join(one), ".".join(other)


def _matrices(modules: Mapping[str, Module], names: Sequence[str], taken: set[str]) -> list[str]:
    return [name for name in names if name not in taken and modules[name].is_matrix]


def _out(attention: Attention, modules: Mapping[str, Module], taken: set[str], alone: bool) -> tuple[str, ...]:
    """The projection after the heads: what is left in the attention's module."""
    if attention.out:
        return (attention.out,)
    if not attention.path:
        return ()
    left = _matrices(modules, under(modules, attention.path), taken)
    if attention.by_head:
        n = len(attention.projections[0].modules)
        heads = [name for name in left if name.startswith(f"{attention.path}.")]
        if len(heads) == n > 1:  # a projection for every head, whose results are added
            return tuple(sorted(heads, key=natural))
        home = attention.path.rpartition(".")[0]
        left = _matrices(modules, under(modules, home), taken) if home else []
    if len(left) == 1:
        return (left[0],)
    named = [name for name in left if _is_out(name)]
    return (named[0],) if len(named) == 1 else ()


def _is_out(name: str) -> bool:
    last = name.split(".")
    while len(last) > 1 and last[-1].isdecimal():  # to_out.0
        last.pop()
    return _OUT.fullmatch(last[-1]) is not None


def _out_of_the_layer(
    attentions: dict[str, AttentionParts], modules: Mapping[str, Module], taken: set[str], width: int
) -> dict[str, AttentionParts]:
    """The projection after the heads where it stands beside the attention: by its name, one for each."""
    found = dict(attentions)
    for name, parts in attentions.items():
        if parts.out:
            continue
        square = [n for n in _matrices(modules, list(modules), taken) if width in modules[n].shape]
        named = [n for n in square if _is_out(n) and not (words(n) & _FEEDFORWARD)]
        named = named or [n for n in square if words(n) & _ATTENTION]
        if len(named) == 1 and len(attentions) == 1:
            found[name] = AttentionParts(parts.attention, (named[0],), parts.q_norm, parts.k_norm)
    return found


def _qk_norms(attention: Attention, modules: Mapping[str, Module], taken: set[str], width: int) -> tuple[str, str]:
    found = {"q": "", "k": ""}
    for name in under(modules, attention.path):
        if name in taken or len(modules[name].shape) != 1 or name == attention.path:
            continue
        said = re.fullmatch(
            r"(?:norm|ln|layer_?norm|rms_?norm)?_?(q|k|query|key)_?(?:norm|ln|layer_?norm|rms_?norm)?",
            name.rpartition(".")[2],
            re.IGNORECASE,
        )
        if said and modules[name].weight is not None and modules[name].shape[0] <= width:
            found[said[1][0].lower()] = name
    return (found["q"], found["k"]) if all(found.values()) else ("", "")


def _feedforward(modules: Mapping[str, Module], taken: set[str], width: int, file: str) -> dict[str, str]:
    """Two matrices, up and down, or three where one of two is a gate."""
    left = [name for name in modules if name not in taken and modules[name].is_matrix and width in modules[name].shape]
    if len(left) == 2:
        first, second = sorted(left, key=natural)
        order = _order(first, second)
        up = modules[first].shape
        if order is None and up[0] != up[1] and not modules[first].raw:
            order = (first, second) if up[1] == width else (second, first)
        if order is None:
            raise CheckpointError(
                N_(
                    "{file} has a feed-forward network of {first} and {second}, and neither names nor shapes say which "
                    "comes first. Rename them (linear1, linear2).",
                    file=file,
                    first=shown(modules[first].path),
                    second=shown(modules[second].path),
                )
            )
        return {"W_in": order[0], "W_out": order[1]}
    if len(left) == 3:
        return _gated(left)
    return {}


def _order(first: str, second: str) -> tuple[str, str] | None:
    """The one that comes first, where names say: by numbers, else by words."""
    one, other = _differing(first, second)
    if numbers(one) != numbers(other) and re.sub(r"\d", "", one) == re.sub(r"\d", "", other):
        return (first, second) if numbers(one) < numbers(other) else (second, first)
    said = [
        bool(_FIRST.fullmatch(name.rpartition(".")[2].lower())) - bool(_LAST.fullmatch(name.rpartition(".")[2].lower()))
        for name in (one, other)
    ]
    if said[0] == said[1]:
        return None
    return (first, second) if said[0] > said[1] else (second, first)


def _gated(names: Sequence[str]) -> dict[str, str]:
    """By the names that LLaMA and its relatives have: gate, up, down, or w1, w3, w2."""
    last = {name.rpartition(".")[2].lower(): name for name in names}
    for gate, up, down in (
        ("gate_proj", "up_proj", "down_proj"),
        ("w1", "w3", "w2"),
        ("w_1", "w_3", "w_2"),
        ("gate", "up", "down"),
        ("w_gate", "w_up", "w_down"),
        ("w_gate", "w_in", "w_out"),
    ):
        if {gate, up, down} == set(last):
            return {"W_gate": last[gate], "W_in": last[up], "W_out": last[down]}
    return {}


def _norms(
    modules: Mapping[str, Module],
    taken: set[str],
    attentions: Mapping[str, AttentionParts],
    feedforward: Mapping[str, str],
    width: int,
    file: str,
    counted: bool,
) -> tuple[dict[str, str], tuple[str, str] | None]:
    found = [name for name, module in modules.items() if name not in taken and is_norm(module, width)]
    found = [name for name in found if name not in feedforward.values()]
    wanted = norms_of(attentions, bool(feedforward))
    if not counted and len(found) > len(wanted):  # norms of the whole model lie beside those of its only layer
        found = [name for name in found if not beside_by_name(name)]
    if not found:
        return {}, None
    if len(found) != len(wanted):
        raise CheckpointError(
            N_(
                "{file} has {n} norms in a layer of {wanted} sublayers: {names}. Supported is one for each sublayer, "
                "before or after it, or none.",
                file=file,
                n=len(found),
                wanted=len(wanted),
                names=", ".join(shown(modules[name].path) for name in found[:6]),
            )
        )
    if len(found) == 1:
        return {wanted[0]: found[0]}, None
    chosen = _by_place(found, attentions, feedforward) or _by_number(found) or _by_words(found, wanted)
    if chosen is not None:
        return dict(zip(wanted, chosen, strict=True)), None
    if len(found) == 2:
        return {}, (found[0], found[1])
    raise CheckpointError(
        N_(
            "{file} has three norms in a layer, {names}, and nothing says which belongs to which sublayer. Rename them "
            "(norm1, norm2, norm3).",
            file=file,
            names=", ".join(shown(modules[name].path) for name in found),
        )
    )


def is_norm(module: Module, width: int) -> bool:
    """Whether a module is a norm by its shape; its author's own may have one number for the whole row."""
    return module.weight is not None and (module.shape == (width,) or (module.own and module.shape == (1,)))


def beside_by_name(name: str) -> bool:
    """Whether a norm is said to stand before or after all layers."""
    return bool(
        words(name) & {"final", "last", "f", "emb", "embed", "embedding", "embeddings", "out", "output", "head", "top"}
    )


def _by_place(
    found: Sequence[str], attentions: Mapping[str, AttentionParts], feedforward: Mapping[str, str]
) -> list[str] | None:
    """Norms that lie in the modules of their sublayers."""
    places = [_home(parts.attention.path, attentions) for parts in attentions.values()]
    if feedforward:
        places.append(_common(list(feedforward.values())))
    chosen: list[str] = []
    for place in places:
        here = [name for name in found if place and name.startswith(f"{place}.")]
        if len(here) != 1:
            return None
        chosen += here
    return chosen if len(set(chosen)) == len(found) else None


def _home(path: str, attentions: Mapping[str, AttentionParts]) -> str:
    """The module around an attention that holds no other."""
    others = [parts.attention.path for parts in attentions.values() if parts.attention.path != path]
    way = path.split(".")
    if len(way) > 1 and way[0].isdecimal() and not any(other.startswith(f"{way[0]}.") for other in others):
        return way[0]  # layers.0.0.fn beside layers.0.0.norm
    return path


def _common(names: Sequence[str]) -> str:
    ways = [name.split(".")[:-1] for name in names]
    n = 0
    while all(len(way) > n for way in ways) and len({way[n] for way in ways}) == 1:
        n += 1
    way = ways[0][:n]
    return way[0] if len(way) > 1 and way[0].isdecimal() else ".".join(way)


def _by_number(found: Sequence[str]) -> list[str] | None:
    """norm1, norm2; sublayer.0.norm, sublayer.1.norm; norm, norm2."""
    stems = {re.sub(r"_?\d+", "", name) for name in found}
    counted = [numbers(name) for name in found]
    if len(stems) != 1 or len(set(counted)) != len(found) or len({len(n) for n in counted if n}) != 1:
        return None
    return sorted(found, key=numbers)


def _by_words(found: Sequence[str], wanted: Sequence[str]) -> list[str] | None:
    by_last = {name.rpartition(".")[2].lower(): name for name in found}
    for first, second in (("input_layernorm", "post_attention_layernorm"), ("input_norm", "post_attention_norm")):
        if set(by_last) == {first, second}:
            return [by_last[first], by_last[second]]
    chosen: dict[str, str] = {}
    for name in found:
        said = words(name)
        if said & _FEEDFORWARD and not said & _ATTENTION:
            role = "feedforward_norm"
        elif "cross_norm" in wanted and said & _CROSS:
            role = "cross_norm"
        elif said & (_SELF | _ATTENTION):
            role = "self_norm"
        else:
            return None
        if role in chosen:
            return None
        chosen[role] = name
    return [chosen[role] for role in wanted] if set(chosen) == set(wanted) else None
