"""What the modules of one layer are: attention, its output, norms, the feed-forward network, masks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from vizformer.checkpoints.bare.layouts.tables import ANSWER, OUTPUT, POSITION, TOKEN
from vizformer.checkpoints.bare.structure import block_norms
from vizformer.checkpoints.bare.structure.attentions import Attention, Projection
from vizformer.checkpoints.bare.structure.block_norms import (
    ATTENTION,
    CROSS,
    FEEDFORWARD,
    SELF,
    AttentionParts,
    norms_of,
)
from vizformer.checkpoints.bare.structure.names import Module, differing, natural, numbers, steps, under, words
from vizformer.checkpoints.bare.structure.stacks import Stack
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

_OUT = re.compile(
    r"(?:w|fc|to|linear|lin|proj|attn|att|c|final|weight|dense)?_?(?:o|out|output|outs|unify\w*|concat|merge|combine|proj|projection|c_proj)"
    r"_?(?:w|proj|projection|lin|linear|layer|weight|fc|net|dense)?\d?",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"(?:w|fc|linear|lin|proj|dense|layer)?_?(?:in|up|expand|hidden|intermediate|inner|c_fc|fc_in|gate)_?(?:proj|linear|layer|\w*)?"
)
_LAST = re.compile(
    r"(?:w|fc|linear|lin|c|dense|layer)?_?(?:out|output|down|contract|proj|squeeze)_?(?:proj|linear|layer|\w*)?"
)


@dataclass(frozen=True)
class Block:
    """The roles of one layer's modules, by their names inside of it."""

    attentions: dict[str, AttentionParts]  # "self_attention" and, in a decoder that reads an encoder, "cross_attention"
    norms: dict[str, str]  # "self_norm", "cross_norm", "feedforward_norm" -> module; empty where none has weights
    pair: tuple[str, str] | None = None  # two norms of which nothing says which is the first
    # "W_in", "W_out" and maybe "W_gate" -> module; empty where there is no such network
    feedforward: dict[str, str] = field(default_factory=dict)
    gates: tuple[str, str] | None = None  # two modules of which nothing says which is the gate
    assumed: tuple[Message, ...] = ()  # how names were read that could be read in another way

    def with_gate(self, name: object) -> "Block":
        """The same where this one of the two is the gate."""
        if self.gates is None or name != self.gates[1]:
            return self
        return replace(self, feedforward={**self.feedforward, "W_gate": self.gates[1], "W_in": self.gates[0]})

    @property
    def sublayers(self) -> list[str]:
        return norms_of(self.attentions, bool(self.feedforward))


def read(stack: Stack, width: int, file: str) -> Block:
    """The roles in the first layer; what has none is left for the matching to name."""
    inner = {module.path: name for name, module in stack.layers[0].items()}
    modules = dict(stack.layers[0])
    if not stack.counted:  # what lies beside the only layer is named for it
        modules = {name: module for name, module in modules.items() if not _is_beside(module.path, stack.attentions)}
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
    norms, pair = block_norms.find(modules, taken, attentions, feedforward, width, file, stack.counted)
    gates = None
    if "W_gate" in feedforward and not _gated(list(feedforward.values())):
        gates = feedforward["W_gate"], feedforward["W_in"]
    return Block(attentions, norms, pair, feedforward, gates, tuple(assumed))


def _is_beside(path: str, attentions: Sequence[Attention]) -> bool:
    """Whether a module is a table or a head, by its name, and has nothing to do with attention."""
    homes = [a.path.rpartition(".")[0] if a.by_head else a.path for a in attentions]
    if any(path.startswith(f"{home}.") for home in homes if home) or any(path in a.inside for a in attentions):
        return False
    return any(pattern.search(path) for pattern in (TOKEN, POSITION, OUTPUT))


def _self_and_cross(attentions: Sequence[Attention], file: str, assumed: list[Message]) -> dict[str, Attention]:
    """Which attention reads the layer's own rows and which those of the encoder."""
    if len(attentions) == 1:
        return {"self_attention": attentions[0]}
    if len(attentions) > 2:
        raise CheckpointError(
            "{file} has layers with {n} attentions ({names}): one opens, or one and another that reads an encoder.",
            file=file,
            n=len(attentions),
            names=", ".join(shown(attention.path) for attention in attentions[:4]),
        )
    one, other = attentions
    first, second = differing(one.path, other.path)
    sides = [bool(words(name) & CROSS) - bool(words(name) & SELF) for name in (first, second)]
    both = [bool(words(name) & CROSS) and bool(words(name) & SELF) for name in (first, second)]
    sides = [1 if mixed else side for side, mixed in zip(sides, both, strict=True)]  # dec_enc_attn
    if sides[0] == sides[1] and _is_nested(one.path, other.path):  # an encoder's layer within one that goes before it
        sides = [0, 1] if len(one.path) < len(other.path) else [1, 0]
    elif sides[0] == sides[1]:
        counted = [numbers(name) for name in (first, second)]
        if counted[0] == counted[1]:
            raise CheckpointError(
                "{file} has two attentions in a layer, {first} and {second}, and nothing says which of them reads the "
                "encoder. Rename them (self, cross).",
                file=file,
                first=shown(one.path),
                second=shown(other.path),
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


def _is_nested(one: str, other: str) -> bool:
    """Whether one of two attentions lies as deep as the layer's own modules do, and the other in a module more."""
    return one.rpartition(".")[2] == other.rpartition(".")[2] and abs(one.count(".") - other.count(".")) == 1


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
        named = [n for n in square if _is_out(n) and not (words(n) & FEEDFORWARD)]
        named = named or [n for n in square if words(n) & ATTENTION]
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
                "{file} has a feed-forward network of {first} and {second}, and neither names nor shapes say which "
                "comes first. Rename them (linear1, linear2).",
                file=file,
                first=shown(modules[first].path),
                second=shown(modules[second].path),
            )
        return {"W_in": order[0], "W_out": order[1]}
    if len(left) == 3:
        return _gated(left) or _gated_by_shape(left, modules, width)
    return {}


def _gated_by_shape(names: Sequence[str], modules: Mapping[str, Module], width: int) -> dict[str, str]:
    """Two matrices as wide as the hidden layer and one back; nothing says which of the two is the gate."""
    shapes = {modules[name].shape for name in names}
    if len(shapes) != 2 or any(modules[name].raw or not ANSWER.fullmatch(name) for name in names):
        return {}
    reads = sorted((name for name in names if modules[name].shape[1] == width), key=natural)
    makes = [name for name in names if name not in reads]
    if len(reads) != 2 or len(makes) != 1 or modules[makes[0]].shape != modules[reads[0]].shape[::-1]:
        return {}
    return {"W_gate": reads[0], "W_in": reads[1], "W_out": makes[0]}


def _order(first: str, second: str) -> tuple[str, str] | None:
    """The one that comes first, where names say: by numbers, else by words."""
    one, other = differing(first, second)
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
