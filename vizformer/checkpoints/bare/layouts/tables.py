"""Finds the tensors beside PyTorch's layers by name and shape: embedding and position tables, an output layer."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, get_args

from torch import Tensor

from vizformer.checkpoints.bare.derived_tensors import Made, reshaped
from vizformer.checkpoints.bare.layout import of_losses, same_numbers
from vizformer.checkpoints.bare.layouts.task_heads import after_the_stack, left_out, modules
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import FLOATS, Weights
from vizformer.checkpoints.hugging_face.family import Options
from vizformer.checkpoints.tensors import questions
from vizformer.checkpoints.tensors.questions import Question, Value
from vizformer.checkpoints.tensors.report import NO_HEAD
from vizformer.checkpoints.tensors.tensor_map import Part, Shape, linear
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message
from vizformer.model.positions import sinusoidal_encoding
from vizformer.options import Sinusoids

# Which of two tables is the source's and which the target's: their names say it, or the output layer does.

SOURCE = re.compile(r"src|source|enc(?!oding)", re.IGNORECASE)
TARGET = re.compile(r"tgt|trg|target|dec", re.IGNORECASE)


class Sides(NamedTuple):
    """The encoder's table and the decoder's, by name, and why they are taken for that."""

    source: str
    target: str
    why: Message


def by_name(first: str, second: str) -> tuple[str, str] | None:
    """(the source's, the target's); None where the names do not say.

    What they have in common ("encoder_decoder.") says nothing.
    """
    sides = [bool(TARGET.search(name)) - bool(SOURCE.search(name)) for name in _differing(first, second)]
    if sides[0] == sides[1]:
        return None
    return (first, second) if sides[0] < sides[1] else (second, first)


def _differing(first: str, second: str) -> tuple[str, str]:
    """Two names without what they begin with and end in alike."""
    one, other = first.split("."), second.split(".")
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return ".".join(one), ".".join(other)


def find_sides(weights: Weights, first: str, second: str, outputs: Sequence[str]) -> Sides | None:
    """Which is which of two tables of tokens; None where neither names nor `outputs` (the output layers) say."""
    if named := by_name(first, second):
        return Sides(
            *named,
            N_(
                "by their names {source} is the source's table of embeddings and {target} the target's",
                source=shown(named[0]),
                target=shown(named[1]),
            ),
        )
    for pair in ((first, second), (second, first)):
        for output in outputs:
            source, target = pair
            values = dict(source=shown(source), target=shown(target), output=shown(output))
            if same_numbers(weights, target, output):
                return Sides(
                    *pair,
                    N_(
                        "{target} is the target's table of embeddings, as {output} holds the same "
                        "numbers; {source} is the source's",
                        **values,
                    ),
                )
            rows = [weights.tensors[name].shape[0] for name in (source, target, output)]
            if len(outputs) == 1 and rows[0] != rows[1] == rows[2]:
                return Sides(
                    *pair,
                    N_(
                        "{target} is the target's table of embeddings, as {output} has as many rows; "
                        "{source} is the source's",
                        **values,
                    ),
                )
    return None


POSITION = re.compile(r"(?:^|[._])(?:pos|wpe)|(?:^|\.)pe(?:\.|$)", re.IGNORECASE)
TOKEN = re.compile(r"emb|tok|wte|lookup", re.IGNORECASE)
OUTPUT = re.compile(r"unemb|head|generator|logit|classif|lm_", re.IGNORECASE)
INPUT = re.compile(r"(?:^|[._])(?:input|word|vocab|lut)", re.IGNORECASE)
FINAL_NORM = re.compile(r"(?:.*\.)?(?:ln_f|ln_final|norm_f|norm_final|final_norm|final_layer_norm)\.(?:weight|bias)")
ANSWER = re.compile(r"[A-Za-z0-9_.+-]{1,96}")  # names that may be an answer: in a terminal, in a link
WAVES = 1e-3  # float32 angles are that far off at position 5000


@dataclass
class Tables:
    """The tables that were found, and the options and questions that follow from them."""

    embedding: str | None = None  # the table of tokens, by name; the target's where there are two
    open_pair: tuple[str, str] | None = None  # two tables of tokens of which nothing says which is the source's
    final_norm: str | None = None  # a norm after the stack that lies beside it, by name
    predicts: bool = False  # whether there is an output layer for tokens
    other_head: bool = False  # whether there is one for something else
    options: Options = field(default_factory=lambda: {"tied_unembedding": True})
    # parts, ties, unused, made: as in `Plan`
    parts: list[Part] = field(default_factory=list)
    ties: dict[str, str] = field(default_factory=dict)
    unused: dict[str, Message] = field(default_factory=dict)
    made: dict[str, Made] = field(default_factory=dict)
    assumptions: list[Message] = field(default_factory=list)

    def divided(self, width: int, by: Value) -> tuple[Options, dict[str, Made]]:
        """Options and tensors where logits are divided by the root of the width: the rows are, and the biases of tokens."""
        if by == "nothing":
            return {}, {}
        scale, biases = width**-0.5, [part.source for part in self.parts if part.targets == ("logit_bias",)]
        made = {
            name: Made((name,), (int(self.options["vocab_size"]),), lambda read: read[0] * scale) for name in biases
        }
        return {"logit_scale": scale}, made

    def begun(self, width: int, row: Value, scaled: Value) -> tuple[Options, dict[str, Made]]:
        """Options and tensors where `row` of a table of positions is the first token's, or the "sum" with it is scaled."""
        factor = width**0.5 if scaled == "sum" else 1.0
        names = self.position_tables() if row or factor != 1 else []
        if not names:
            return {}, {}
        n = int(self.options["max_positions"]) - int(row)

        def build(read: Sequence[Tensor]) -> Tensor:
            return read[0].reshape(-1, width)[int(row) :] * factor

        return {"max_positions": n}, {name: Made((name,), (n, width), build) for name in names}

    def scaled(self) -> list[Question]:
        """Whether embeddings are scaled, and whether positions with them."""
        if self.position_tables():
            return [questions.SCALED, questions.SCALED_ROWS]
        why = N_(
            "the sinusoidal positions would be scaled with the embeddings, which VizFormer computes only for "
            "learned positions"
        )
        return [questions.SCALED, replace(questions.SCALED_ROWS, refused={"sum": why})]

    def of_logits(self) -> list[Question]:
        """Whether a file without any head makes its logits with the embeddings, and by what they are divided."""
        headless = not self.predicts and not self.other_head and self.embedding is not None
        scale = [questions.LOGIT_SCALE] if headless or self.predicts else []
        return [questions.TIED, *scale] if headless else scale

    def of_ends(self, tied: bool) -> list[Message]:
        """The assumptions without an embedding table or without an output layer; `tied`: the table computes the logits."""
        if self.embedding is None:
            note = N_(
                "the file has no embedding table: token id i becomes the one-hot vector with 1 at "
                "position i, and logits mean nothing"
            )
            return [note]
        return [] if self.predicts or tied else [NO_HEAD]

    def position_tables(self) -> list[str]:
        """The names of the learned position tables."""
        return [part.source for part in self.parts if part.targets[0].endswith("position_embedding.weight")]

    def first_position(self) -> list[Question]:
        """The question which row of a learned position table the first token gets, where there is such a table."""
        rows = range(min(3, int(self.options.get("max_positions", 0))))
        return [questions.first_position(name, rows) for name in self.position_tables()[:1]]


def alone(over: Value) -> Options:
    """Attention over the texts of a batch: in one text each token sees itself alone, as through a window of one token."""
    return {"sliding_window": 1} if over == "batch" else {}


def find_tables(
    weights: Weights, d_model: int, inside: Collection[str], *, both: bool = False, source: str | None = None
) -> Tables:
    """Looks at the tensors that are not `inside` a stack; what it does not know stays a problem of the matching.

    With `both` stacks there may be two tables of tokens and two of positions; `source` names the encoder's table of
    tokens, where somebody said so.
    """
    tables = Tables()
    wide = {}
    for name, stored in weights.tensors.items():
        shape = tuple(n for n in stored.shape if n != 1) if len(stored.shape) == 3 else stored.shape
        if name not in inside and len(shape) == 2 and shape[1] == d_model and stored.dtype in FLOATS:
            wide[name] = shape
    positions = [name for name in wide if POSITION.search(name)]
    flat = {n: shape for n, shape in wide.items() if n not in positions and weights.tensors[n].shape == shape}
    tokens = [name for name in flat if TOKEN.search(name) and not _is_output(name, weights)]
    tokens = tokens or _by_its_rows(flat, weights) or _input(flat, weights, d_model)
    _positions(tables, weights, {name: wide[name] for name in positions}, both)
    others = {name: shape for name, shape in flat.items() if name not in tokens}
    if tokens:
        _tokens(tables, weights, tokens, [name for name in others if name.endswith(".weight")], both, source)
    tables.unused |= of_losses(weights)
    beside = [name for name in weights.tensors if name not in inside and name not in tables.unused]
    placed = {*inside, *tokens, *positions}
    around = modules([name for name in beside if name not in placed], placed)
    _outputs(tables, weights, others, around)
    norms = {name.rpartition(".")[0] for name in weights.tensors if name not in inside and FINAL_NORM.fullmatch(name)}
    if len(norms) == 1:
        (tables.final_norm,) = norms
    taken = {part.source for part in tables.parts} | tables.ties.keys()
    free = {module: names for module, names in around.items() if not taken.intersection(names)}
    for module in after_the_stack(free, weights, d_model):
        tables.other_head = True
        note = N_("a head that comes after the last layer")
        tables.unused |= dict.fromkeys(free[module], note)
        tables.assumptions.append(left_out(module, free[module], weights))
    return tables


def _is_output(name: str, weights: Weights) -> bool:
    """An embedding has no bias beside it, and is not called a head."""
    return OUTPUT.search(name) is not None or f"{name.removesuffix('weight')}bias" in weights.tensors


def _by_its_rows(flat: Mapping[str, Shape], weights: Weights) -> list[str]:
    """A table without a name that says so: the only one that is no output, with as many rows as the output."""
    others = [name for name in flat if not _is_output(name, weights)]
    rows = {flat[name][0] for name in flat if name not in others}
    return others if len(others) == 1 and flat[others[0]][0] in rows else []


def _input(flat: Mapping[str, Shape], weights: Weights, d_model: int) -> list[str]:
    """A table that is only called an input: its rows are those of the layers, and it is no map from such to such."""
    named = [name for name in flat if INPUT.search(name) and not _is_output(name, weights) and flat[name][0] != d_model]
    return named if len(named) == 1 else []


def _positions(tables: Tables, weights: Weights, found: Mapping[str, Shape], both: bool) -> None:
    """Sine waves are computed anew, a learned table is taken; encoder and decoder may have one each."""
    kinds = {name: _waves(tables, weights, name, shape) for name, shape in found.items()}
    if not found or len(found) > (2 if both else 1):
        return
    names, rows = list(found), [shape[0] for shape in found.values()]
    pair = by_name(*names) if len(names) == 2 else None
    same = len(names) == 1 or same_numbers(weights, *names)
    if len(set(kinds.values())) > 1 or (None in kinds.values() and not same and (pair is None or rows[0] != rows[1])):
        raise CheckpointError(
            "{file} has two position tables, {names}. VizFormer opens two if both are sinusoidal, or if "
            "they have equally many rows and their names say which is the encoder's (src, source, enc; "
            "tgt, trg, target, dec).",
            file=weights.where,
            names=", ".join(map(shown, names)),
        )
    tables.options["max_positions"] = min(rows)
    if (sinusoids := kinds[names[0]]) is not None:
        tables.options |= {"positions": "sinusoidal", "sinusoids": sinusoids}
        return
    tables.options["positions"] = "learned"
    for name, shape in found.items():
        if weights.tensors[name].shape != shape:
            tables.made[name] = reshaped(name, shape)
    if same:
        first, *again = names
        tables.ties |= dict.fromkeys(again, first)
        tables.parts.append(Part(first, ("position_embedding.weight",)))
        tables.assumptions.append(N_("a row of {name} for each position is added to the embeddings", name=shown(first)))
        return
    source, target = pair or ("", "")
    tables.options["stack_inputs"] = "own"
    tables.parts.append(Part(source, ("position_embedding.weight",)))
    tables.parts.append(Part(target, ("decoder_position_embedding.weight",)))
    tables.assumptions.append(
        N_(
            "by their names a row of {source} for each position is added to the embeddings of the source, and of {target} "
            "to those of the target",
            source=shown(source),
            target=shown(target),
        )
    )


def _waves(tables: Tables, weights: Weights, name: str, shape: Shape) -> Sinusoids | None:
    """The layout of a sinusoidal position table; None where a table holds something else."""
    rows, d_model = shape
    stored = weights.tensors[name].read().reshape(shape)
    for sinusoids in get_args(Sinusoids) if d_model % 2 == 0 else ():
        waves = sinusoidal_encoding(rows, d_model, sinusoids)
        if not (distance := float((stored.float() - waves).abs().max())) <= WAVES:
            continue
        tables.unused[name] = N_("the sinusoidal position table: it follows from the width")
        tables.assumptions.append(
            N_(
                "{name} is the sinusoidal position table, to within {distance}: it is added to the embeddings",
                name=shown(name),
                distance=f"{distance:.1e}",
            )
        )
        found: Sinusoids = sinusoids
        return found
    return None


def _tokens(
    tables: Tables, weights: Weights, names: list[str], outputs: list[str], both: bool, source: str | None
) -> None:
    """Takes one embedding table, under one name or several, or one for each stack."""
    firsts: list[str] = []  # of each table the first name
    for name in names:
        again = next((first for first in firsts if same_numbers(weights, first, name)), None)
        if again is None:
            firsts.append(name)
        else:
            tables.ties[name] = again
    if len(firsts) > (2 if both else 1):
        raise CheckpointError(
            "{file} has several embedding tables, {names}. VizFormer supports one that encoder and "
            "decoder share, or one for each of the two.",
            file=weights.where,
            names=", ".join(map(shown, firsts[:6])),
        )
    if len(firsts) == 2:
        _two(tables, weights, firsts, outputs, source)
        return
    (tables.embedding,) = firsts
    tables.options["vocab_size"] = weights.tensors[firsts[0]].shape[0]
    tables.parts.append(Part(firsts[0], ("embedding.weight",)))
    tables.assumptions.append(N_("{name} is the table of token embeddings", name=shown(firsts[0])))


def _two(tables: Tables, weights: Weights, names: list[str], outputs: list[str], source: str | None) -> None:
    """The encoder's table and the decoder's; `source` counts only where nothing else says which is which."""
    first, second = names
    found = find_sides(weights, first, second, outputs)
    if found is None:
        if not all(map(ANSWER.fullmatch, names)):  # it could be written into no link
            raise CheckpointError(
                "{file} has two embedding tables, {names}, and their names do not say which is the "
                "encoder's. Rename them (src, source, enc; tgt, trg, target, dec).",
                file=weights.where,
                names=", ".join(map(shown, names)),
            )
        tables.open_pair = (first, second)
        if source == second:
            first, second = second, first
        found = Sides(
            first,
            second,
            N_(
                "{source} is the source's table of embeddings, {target} the target's",
                source=shown(first),
                target=shown(second),
            ),
        )
    rows = {name: weights.tensors[name].shape[0] for name in names}
    tables.embedding = found.target
    tables.options |= {"vocab_size": rows[found.target], "source_vocab_size": rows[found.source]}
    tables.parts += [Part(found.source, ("source_embedding.weight",)), Part(found.target, ("embedding.weight",))]
    tables.assumptions.append(found.why)


def _outputs(tables: Tables, weights: Weights, found: Mapping[str, Shape], around: Mapping[str, list[str]]) -> None:
    """An output layer has a row for every token, and is a module alone: one of several layers is another head."""
    size = 0 if tables.embedding is None else weights.tensors[tables.embedding].shape[0]
    alone = {n for names in around.values() for n in names if len({name.rpartition(".")[0] for name in names}) == 1}
    heads = [name for name, (rows, __) in found.items() if rows == size and name.endswith(".weight") and name in alone]
    if len(heads) == 1:
        head = heads[0].removesuffix(".weight")
        tables.predicts = True
        if tables.embedding is not None and same_numbers(weights, tables.embedding, heads[0]):
            tables.ties[heads[0]] = tables.embedding
        else:
            tables.options["tied_unembedding"] = False
            tables.parts += linear(head, "unembedding", bias=False)
        if f"{head}.bias" in weights.tensors:
            tables.options["logit_bias"] = True
            tables.parts.append(Part(f"{head}.bias", ("logit_bias",)))
        tables.assumptions.append(
            N_("{name} is the output layer: it computes the logits from the last layer's output", name=shown(heads[0]))
        )
