"""What the tensors of a hand-written model leave open: only what has answers under which the model opens."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations

from vizformer.checkpoints.bare.layouts.tables import ANSWER, Tables
from vizformer.checkpoints.bare.structure.findings import Found
from vizformer.checkpoints.bare.structure.outer_parts import ONE_HOT
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.tensors import questions
from vizformer.checkpoints.tensors.questions import NORM, OTHERWISE, Question, Value
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

ROPE_OF_ROWS = "rope_before_heads"
NORMED_STREAM = "normed_stream"  # an order of norms: x <- norm(x), then x <- x + f(x)
ABSENT = replace(  # no norm has weights
    NORM,
    text=N_("Which norm does the model have, in its layers or elsewhere? (None of them has weights.)"),
    choices=("none", *NORM.choices),
    usual="none",
    insists=True,
)
OWN_NORM = Question(
    "norm",
    N_("What does the norm, which its author wrote, divide by: the root of variance + ε, or deviation + ε?"),
    ("layer_norm", "deviation_norm"),
)
ALTERNATE = ("by_head", "by_number", "by_head_number", "by_number_head")
ROWS = Question("qkv_rows", N_("How do query, key and value lie in their common matrix?"))
APPLIED = Question(
    "layer_applied",
    N_("The file has one layer: is it applied once, or again and again?"),
    ("once", "repeatedly"),
    usual="once",
    insists=True,
    refused={
        "repeatedly": N_(
            "the one layer in the file would be applied again and again. Save a model with a list of as many layers "
            "(nn.ModuleList([layer] * n)): then that opens"
        )
    },
)
NORMED = Question(
    "normed_embeddings",
    N_("Are the embeddings normalised after positions were added to them, or before?"),
    ("sum", "tokens"),
    usual="sum",
    insists=True,
    moot={
        "norm_place": ("last", "nowhere"),
        "embedding_norm": (False,),
        "positions": ("rope", "rope_pairs", "alibi", "none"),
    },
    refused={"tokens": N_("a norm would normalise the embeddings before positions are added")},
)
HEAD_ROWS = Question(
    "head_rows",
    N_("How are the numbers of a query, key or value divided among the heads?"),
    ("head_by_head", "in_turn", "split_in_turn", "joined_in_turn", "not_transposed"),
    usual="head_by_head",
    insists=True,
    moot={"n_heads": (1,)},
    refused={
        "not_transposed": N_(
            "the heads would each read a part of the text only, cut off where the reshape cuts it: what is called a head is "
            "none"
        )
    },
)
SOFTMAX = Question(
    "softmax",
    N_("How do scores become weights?"),
    ("over_keys", "before_mask", "over_queries"),
    usual="over_keys",
    insists=True,
    refused={
        "before_mask": N_("weights that are masked after the softmax would not sum to 1"),
        "over_queries": N_("the softmax would run over the queries, so that a query's weights would not sum to 1"),
    },
)
MATRICES = Question("matrices", N_("How are the matrices multiplied?"), ("x_W", "W_x"))
WEIGHTLESS_QK_NORM = replace(
    questions.without_weights("qk_norm"),
    text=N_("Are queries and keys normalised, head by head, by a norm without weights?"),
    choices=(False, True, OTHERWISE),
    refused={OTHERWISE: N_("queries and keys would have another kind of norm than the rows")},
)
SCALE = Question(
    "score_scale",
    N_("What are the scores divided by?"),
    ("root_of_d_head", "root_of_d_model", "d_head", "nothing"),
    usual="root_of_d_head",
    insists=True,
)


def score_scale(answers: dict[str, Value], width: int, d_head: int) -> Options:
    """What the answer, which it takes out, makes of the scores; nothing where it is what our models do."""
    said = answers.pop("score_scale", "root_of_d_head")
    scale = {"root_of_d_model": width**-0.5, "d_head": 1 / d_head, "nothing": 1.0}.get(str(said))
    return {} if scale is None or scale == d_head**-0.5 else {"attention_scale": scale}


ROPE_THETA = Question(
    "rope_theta",
    N_("What is the base of rotary positions?"),
    usual=10_000,
    likely=(10_000, 100_000, 500_000, 1_000_000),
    moot={"positions": ("sinusoidal", "sinusoidal_halves", "alibi", "none")},
    whole=True,
    lowest=2,
    highest=10**9,
)


def norm_place(name: str, *, unused: bool) -> Question:
    """Where norms stand that lie beside the layers; `unused` where they may be nowhere."""
    text = N_("Where does the norm {name} stand?", name=shown(name))
    return Question("norm_place", text, ("last", "first", "nowhere") if unused else ("last", "first"))


def segment_row(name: str, rows: int) -> Question:
    """Which row of a table of segments belongs to a text without parts, if any."""
    text = N_("Which row of {name} is added to the embeddings of a text without parts?", name=shown(name))
    return Question("segment_row", text, (*range(rows), "none"), usual=0, insists=True)


def first_norm(names: tuple[str, str]) -> Question:
    text = N_("Which of the two norms of a layer belongs to attention?")
    return Question("first_norm", text, names, moot={"norm_order": ("none",)})


def gate(names: tuple[str, str]) -> Question:
    return Question("gate", N_("Which of the two goes through the activation function, as the gate?"), names)


def heads(queries: int, keys: int) -> Question:
    """Whole numbers of heads, of query heads and of those of keys."""
    possible = [h for h in questions.divisors(queries) if keys % (queries // h) == 0]
    return Question("n_heads", N_("How many attention heads has a layer?"), tuple(possible))


def positions(width: int, *, both: bool, heads: Sequence[int], rotary: bool) -> Question:
    """How positions may be told where there is no table of them; `rotary` where the file has frequencies to turn by."""
    choices: tuple[str, ...]
    if rotary:
        return Question("positions", N_("What tells the model where a token stands?"), ("rope", "rope_pairs"))
    choices = ("sinusoidal", "sinusoidal_halves") if width % 2 == 0 else ()
    if not both and any(width // h % 2 == 0 for h in heads):
        choices += ("rope", "rope_pairs", ROPE_OF_ROWS)
    if not both:
        choices += ("alibi",)
    why = N_("queries and keys would be turned before they are split into heads, each head at rates of its own")
    refused: dict[Value, Message] = {ROPE_OF_ROWS: why} if ROPE_OF_ROWS in choices else {}
    return Question("positions", N_("What tells the model where a token stands?"), (*choices, "none"), refused=refused)


def norm_kind(found: Found) -> str | Question:
    """The norm of the layers, where names or biases say it, else the question which it is.

    A norm that its author wrote may divide by another deviation than nn.LayerNorm; names a_2 and b_2 are those of code
    that does.
    """
    norms = found.every_norm()
    if not norms:
        return NORM if found.qk_normed else ABSENT
    if any(module.bias is not None for module in norms):
        if not any(module.own for module in norms):
            return "layer_norm"
        leaves = {name.rpartition(".")[2] for module in norms for name in module.names}
        return replace(OWN_NORM, usual="deviation_norm") if leaves == {"a_2", "b_2"} else OWN_NORM
    return "rms_norm" if any("rms" in module.path.lower() for module in norms) else NORM


def find_open_questions(found: Found, tables: Tables, kind: str | Question) -> list[Question]:
    """What is left, in the order of a form."""
    sizes = found.sizes
    n_heads = heads(sizes.queries, sizes.keys)
    left: list[Question] = []
    if sizes.heads is None and not found.qk_normed:
        left.append(n_heads)
    left += [_norm_order(found, kind)]
    if isinstance(kind, Question):
        left.append(kind)
    kinds = ("sequential", "none", OTHERWISE) if found.both or not sizes.inner else questions.RESIDUAL.choices
    left.append(replace(questions.RESIDUAL, choices=kinds, insists=True))
    if sizes.inner:
        left.append(questions.ACTIVATION)
    if (gates := found.blocks[0].gates) is not None:
        left.append(gate(gates))
    if not found.buffers.causal:
        left.append(questions.MASKED if found.both else questions.CAUSAL)
    fused = [p.letters for block in found.blocks for a in block.attentions.values() for p in a.attention.projections]
    if any(len(letters) > 1 for letters in fused) and sizes.keys == sizes.queries:
        left.append(_rows(found))
    if sizes.heads is None and sizes.repeated == 1 and not found.is_packed:
        left.append(HEAD_ROWS)
    if not found.stacks[-1].counted:
        left.append(APPLIED)
    if found.turned[True] is None:
        left.append(MATRICES)
    if pair := found.blocks[0].pair:
        if not all(map(ANSWER.fullmatch, pair)):  # they could be written into no link
            raise CheckpointError(
                "{file} has two norms in a layer, {names}, and nothing says which belongs to which sublayer. Rename "
                "them (norm1, norm2).",
                file=found.weights.where,
                names=", ".join(map(shown, pair)),
            )
        left.append(first_norm(pair))
    left += _beside(found)
    if (found.norms.first or found.norms.open) and not found.buffers.pairs:
        left.append(NORMED)
    if kind is ABSENT:
        left += map(questions.without_weights, ("final_norm", "embedding_norm", "qk_norm"))
    elif not found.qk_normed and not found.is_packed:
        left.append(WEIGHTLESS_QK_NORM)
    left += tables.first_position()
    if tables.open_pair is not None:
        left.append(questions.source_embedding(tables.open_pair))
    if tables.embedding is not None and not tables.embedding.endswith(ONE_HOT):
        left += tables.scaled(segments=bool(found.segments))
    if "positions" not in tables.options and not found.buffers.pairs:
        left.append(
            positions(
                sizes.width,
                both=found.both,
                heads=[int(str(h)) for h in n_heads.choices] if sizes.heads is None else [sizes.heads],
                rotary=found.buffers.theta is not None,
            )
        )
        if found.buffers.theta is None and "rope" in left[-1].choices:
            left.append(ROPE_THETA)
    usual_eps = 1e-6 if isinstance(kind, Question) and kind.usual == "deviation_norm" else questions.NORM_EPS.usual
    left.append(replace(questions.NORM_EPS, usual=usual_eps, insists=True, moot={"norm": ("none",)}))
    scales = [scale for scale in SCALE.choices if scale != "root_of_d_model" or sizes.heads != 1 or sizes.repeated > 1]
    left.append(replace(SCALE, choices=tuple(scales), usual=SCALE.usual if sizes.repeated == 1 else None))
    if not found.is_packed:
        left.append(SOFTMAX)
    elif not found.both:
        left.append(questions.ATTENTION_OVER)
    if found.segments:
        left.append(segment_row(found.segments, found.weights.tensors[found.segments].shape[0]))
    left += tables.of_logits()
    if "max_positions" not in tables.options:
        left.append(questions.MAX_POSITIONS)
    if found.both and tables.embedding is not None:
        rows = [int(tables.options["vocab_size"]), int(tables.options.get("source_vocab_size") or 0)]
        left += questions.marks(max(rows))
    return left


def _norm_order(found: Found, kind: str | Question) -> Question:
    """Absent norms are read as absent; those whose weights are exactly 1 and 0 may be unused."""
    choices: tuple[str, ...] = ("post", "pre", "output") if found.sizes.inner else ("pre", "output")
    if found.sizes.inner and not found.norms.first:
        choices += (NORMED_STREAM,)
    why = N_("norms would stand at several places of a sublayer, or at different ones for attention and feed-forward")
    usual, layers = None if found.sizes.inner else "pre", found.layer_norms()
    order = replace(questions.NORM_ORDER, usual=usual, insists=True, refused={OTHERWISE: why})
    if not layers and kind is ABSENT:
        return replace(order, choices=(*choices, "none", OTHERWISE), moot={"norm": ("none",)})
    if layers and not found.are_one(layers):
        return replace(order, choices=(*choices, OTHERWISE))
    if layers:
        return replace(order, choices=(*choices, "none", OTHERWISE), usual=None)
    return replace(order, choices=("none", *choices, OTHERWISE), usual="none")


def _beside(found: Found) -> Iterator[Question]:
    """Of norms beside the layers, where they stand, and whether those with the weights 1 and 0 are used."""
    norms = found.norms
    if norms.open:
        modules = list(norms.open.values())
        yield norm_place(modules[0].path, unused=found.are_one(modules))
    for name, place in (("final_norm", norms.last), ("embedding_norm", norms.first)):
        if place and found.are_one(modules := list(place.values())):
            yield questions.is_applied(name, shown(modules[0].path))


def _rows(found: Found) -> Question:
    """Usual where the name is that of code that is known to lay out its rows in that way."""
    names = [a.attention.inside[0] for block in found.blocks for a in block.attentions.values()]
    known = {name.rpartition(".")[2] for name in names}
    usual = "q_k_v" if known <= {"c_attn", "in_proj", "to_qkv", "qkv", "Wqkv"} else None
    projections = (p for block in found.blocks for a in block.attentions.values() for p in a.attention.projections)
    letters = max((p.letters for p in projections), key=len)
    __, *others = map("_".join, permutations(letters))  # the first is that of the name, which we call "q_k_v"
    # A matrix named kqv may hold q, k, v all the same.
    others = [one.replace("q_k_v", "as_q_k_v") for one in others]
    return replace(ROWS, choices=("q_k_v", *others, *ALTERNATE), usual=usual)
