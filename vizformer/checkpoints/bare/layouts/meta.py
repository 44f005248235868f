"""Weights as Meta publishes LLaMA (consolidated.00.pth with params.json), and what has its names: Mistral's, llama2.c's.

Rotary positions turn neighbouring numbers of a head here, 2m and 2m + 1; `transformers` and we turn m and m + d/2: the
rows of W_Q and W_K are brought into that order.  The width of the feed-forward layers follows from three fields:

    w = 2/3 * 4 dim, times ffn_dim_multiplier,  up to the next multiple of multiple_of

Source: github.com/meta-llama/llama and llama-models (model.py), github.com/mistralai/mistral-inference, llama2.c.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from vizformer.checkpoints.bare.layout import Layout, Plan, layers_of, matrix, same_numbers
from vizformer.checkpoints.bare.tokenizers_beside import PARAMS
from vizformer.checkpoints.files.untrusted_folder import listed, shown
from vizformer.checkpoints.files.weights import Weights
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.tensors.questions import MAX_POSITIONS, NORM_EPS, Question, Said, Value
from vizformer.checkpoints.tensors.tensor_map import Part, attention, layers, linear, neighbours_apart
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

NAME = "LLaMA (Meta)"
_LAYER = {
    **attention("attention.{}", "wq wk wv wo"),
    "feed_forward.w1": ["feedforward.W_gate"],
    "feed_forward.w2": ["feedforward.W_out"],
    "feed_forward.w3": ["feedforward.W_in"],
    "attention_norm": ["self_norm"],
    "ffn_norm": ["feedforward_norm"],
}
_NEEDED = ("dim", "n_layers", "n_heads")
_READ = (
    *_NEEDED,
    *("n_kv_heads", "head_dim", "hidden_dim", "vocab_size", "multiple_of", "ffn_dim_multiplier", "norm_eps"),
    *("rope_theta", "use_scaled_rope", "rope_scaling_factor", "sliding_window", "max_seq_len"),
    *("max_batch_size", "dropout"),  # of a run, and of the training
)
_LARGEST = 2**24
ROPE_FACTOR = Question(
    "rope_factor", N_("What is the scaling factor of the rotary positions (LLaMA 3.1: 8, LLaMA 3.2: 32)?"), (8, 32)
)


def recognise(weights: Weights, said: Said) -> Layout | None:
    """The layout, if the tensors have its names and the fields of Meta's code lie beside them or in the file."""
    names = weights.tensors
    n_layers = layers_of(names, r"(?P<prefix>)layers\.(?P<index>\d{1,4})\.attention\.wq\.weight").get("", 0)
    where, fields = next(((w, f) for w, f in said.items() if _is_of_meta(w, f)), ("", {}))
    if not (where and n_layers and {"tok_embeddings.weight", "layers.0.feed_forward.w3.weight"} <= names.keys()):
        return None
    problems = _not_read(fields)
    options = {} if problems else _options(weights, fields, n_layers, problems)
    if problems:
        raise CheckpointError(
            "{where} does not fit {file}: {problems}. If a model is split over several files "
            "(consolidated.01.pth), each has a part of every tensor: put all of them into the folder.",
            where=shown(where),
            file=shown(weights.where),
            problems=listed(problems),
        )
    scaled = bool(fields.get("use_scaled_rope"))
    assumptions = [
        N_(
            "the names are those of Meta's code, whose rotary positions rotate neighbouring numbers; "
            "{where} gives the rest",
            where=shown(where),
        )
    ]
    if fields.get("rope_theta") is None:
        assumptions.append(
            N_("{where} does not give rope_theta: taken as 10000, as in Meta's code", where=shown(where))
        )
    asked = (ROPE_FACTOR,) if scaled and fields.get("rope_scaling_factor") is None else ()
    questions = (NORM_EPS, MAX_POSITIONS, *asked)
    return Layout(NAME, questions, partial(_plan, weights, options, scaled, fields, tuple(assumptions)))


def _is_of_meta(where: str, fields: Mapping[str, Any]) -> bool:
    """Whether fields are those of Meta's code; in a file of weights only where all of them are (llama2.c)."""
    own = "multiple_of" in fields and not _not_read(fields)
    return all(name in fields for name in _NEEDED) and (where == PARAMS or own)


def _not_read(fields: Mapping[str, Any]) -> list[Message]:
    """Fields that are not known, or are not what they should be."""
    sizes = ("dim", "n_layers", "n_heads", "n_kv_heads", "head_dim", "hidden_dim", "multiple_of", "sliding_window")
    numbers = ("ffn_dim_multiplier", "rope_theta", "rope_scaling_factor")

    def right(name: str, value: object) -> bool:
        if name in sizes:
            return type(value) is int and 0 < value < _LARGEST
        if name in numbers:
            return type(value) in (int, float) and 0 < value < 1e12  # type: ignore[operator]
        if name == "norm_eps":
            return type(value) is float and 0 < value < 0.5
        return name in _READ and type(value) in (int, float, bool)

    wrong = [(name, value) for name, value in fields.items() if value is not None and not right(name, value)]
    absent = [(name, None) for name in _NEEDED if fields.get(name) is None]
    return [N_("{field}={value}", field=shown(name), value=shown(value)) for name, value in (*wrong, *absent)]


def _options(weights: Weights, fields: Mapping[str, Any], n_layers: int, problems: list[Message]) -> Options:
    """The options that the fields give, checked against the tensors."""

    def said(name: str, otherwise: Any) -> Any:
        return otherwise if fields.get(name) is None else fields[name]

    dim, heads = fields["dim"], fields["n_heads"]
    kv_heads, d_head = said("n_kv_heads", heads), said("head_dim", dim // heads)
    hidden = said("hidden_dim", None)
    if hidden is None and fields.get("multiple_of") is not None:
        multiple = fields["multiple_of"]
        hidden = -(-int(said("ffn_dim_multiplier", 1) * int(2 * 4 * dim / 3)) // multiple) * multiple
    rows, columns = matrix(weights, "tok_embeddings.weight")
    queries, keys, gates = (
        matrix(weights, f"layers.0.{name}.weight")[0] for name in ("attention.wq", "attention.wk", "feed_forward.w1")
    )
    vocab_size = said("vocab_size", -1)
    found = {
        "dim": (dim, columns),
        "n_layers": (fields["n_layers"], n_layers),
        "n_heads * head_dim": (heads * d_head, queries),
        "n_kv_heads * head_dim": (kv_heads * d_head, keys),
        "ffn_dim": (gates if hidden is None else hidden, gates),
        "vocab_size": (rows if vocab_size == -1 else vocab_size, rows),  # (the tokenizer says it then)
    }
    problems += [
        N_("{name} is {said}, and {found} in the tensors", name=name, said=wanted, found=there)
        for name, (wanted, there) in found.items()
        if wanted != there
    ]
    return dict(
        vocab_size=rows,
        d_model=dim,
        d_ff=gates,
        n_heads=heads,
        n_kv_heads=None if kv_heads == heads else kv_heads,
        head_dim=None if heads * d_head == dim else d_head,
        n_decoder_layers=n_layers,
        sliding_window=said("sliding_window", None),
        positions="rope",
        rope_theta=float(said("rope_theta", 10_000)),
        norm="rms_norm",
        norm_order="pre",
        final_norm=True,
        feedforward="gated",
        activation="silu",
        bias=False,
        dropout=0.0,
    )


def _plan(
    weights: Weights,
    options: Options,
    scaled: bool,
    fields: Mapping[str, Any],
    assumptions: tuple[Message, ...],
    answers: Mapping[str, Value],
) -> Plan:
    tied = "output.weight" not in weights.tensors or same_numbers(weights, "tok_embeddings.weight", "output.weight")
    d_head = options["head_dim"] or options["d_model"] // options["n_heads"]
    heads = {".wq.weight": options["n_heads"], ".wk.weight": options["n_kv_heads"] or options["n_heads"]}
    parts = [
        Part("tok_embeddings.weight", ("embedding.weight",)),
        *layers(_LAYER, "layers.{}", "decoder.layers.{}", options["n_decoder_layers"], bias=False),
        *linear("norm", "decoder.final_norm", bias=False),
        *([] if tied else linear("output", "unembedding", bias=False)),
    ]
    parts = [
        Part(part.source, part.targets, order=partial(neighbours_apart, heads[end], d_head))
        if (end := part.source[-len(".wq.weight") :]) in heads
        else part
        for part in parts
    ]
    answers = dict(answers)
    slower: Options = {}
    if scaled:
        factor = float(str(answers.pop("rope_factor", fields.get("rope_scaling_factor"))))
        slower = dict(rope_scaling="llama3", rope_factor=factor, rope_low_turns=1.0, rope_high_turns=4.0)
    follow = N_("the angles of the rotary positions: they follow from rope_theta")
    return Plan(
        {**options, **slower, "tied_unembedding": tied, **answers},
        parts,
        ties={"output.weight": "tok_embeddings.weight"} if tied else {},
        unused={
            name: follow for name in weights.tensors if name in ("rope.freqs", "freqs_cis", "freqs_cos", "freqs_sin")
        },
        assumptions=assumptions,
    )
