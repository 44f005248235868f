"""What weights do not say of their model, asked of whoever opens them: questions, and where the answers came from.

An answer is given (`vf.load(path, n_heads=4)`), or read from what lies beside the weights (`model_args` in the file,
config.json), or else usual.  However it came about, it is an assumption: the weights fit other answers as well.  A
question whose answer is only the usual one is still open, and the report lists it (`Report.open_questions`).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from vizformer.checkpoints.files.untrusted_folder import listed, shown
from vizformer.checkpoints.tensors.tensor_map import ACTIVATIONS
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message
from vizformer.options import Activation

Value = bool | int | float | str
Said = Mapping[str, Mapping[str, Any]]  # where -> field -> value, as found beside the weights
Taken = Literal["given", "beside", "usual"]
"""The source of an answer: the caller of `load`, a file beside the weights, or the default."""
OTHERWISE = "otherwise"  # the answer of who has none of the others: it is refused


@dataclass(frozen=True)
class Question:
    """One thing that the weights do not say.

    Attributes:
        name: the keyword of `load` that answers it.
        choices: the possible answers; none where it is a number.
        usual: what is taken where nobody answers; None: somebody has to, unless it is `optional`.
        insists: whether it is asked although there is a usual answer, because many models have another; that one is
            taken only from who has answered all that has none (in a link from before this was asked).
        likely: of a number, those that models have; with `choices`, these are the `possible` answers.
        moot: answers to other questions, by name, under which this one decides nothing.
        refused: choices that make a model which does not open, with the reason: who is not asked gives another answer.
        stands_for: what the usual answer says in answers to other questions, which are not asked then.
        whole: of a number, whether it must be whole; it is then a count or a token id.
    """

    name: str
    text: Message
    choices: tuple[Value, ...] = ()
    usual: Value | None = None
    insists: bool = False
    likely: tuple[Value, ...] = ()
    moot: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    refused: Mapping[Value, Message] = field(default_factory=dict)
    stands_for: Mapping[str, Value] = field(default_factory=dict)
    whole: bool = False
    lowest: float = 0.0
    highest: float = math.inf
    optional: bool = False

    @property
    def possible(self) -> tuple[Value, ...]:
        """The answers that a model may have; none for a number that may be any."""
        return self.choices or self.likely

    @property
    def open(self) -> tuple[Value, ...]:
        """The possible answers that are not refused; they can be tried one by one."""
        return tuple(value for value in self.possible if value not in self.refused)

    def decides(self, answers: Mapping[str, Value]) -> bool:
        """Whether it decides anything under these answers to the others."""
        return not any(answers.get(name) in values for name, values in self.moot.items())

    def read(self, value: object) -> Value | None:
        """The answer that `value` is, also of NumPy, or as text (in a link, at a prompt); None if it is none."""
        value = value.item() if isinstance(value, np.generic) else value
        if self.choices:
            for choice in self.choices:
                if type(choice) is type(value) and choice == value:
                    return choice
                if isinstance(value, str) and not isinstance(choice, str) and str(choice).lower() == value.lower():
                    return choice  # a form writes True into the link
            return None
        if isinstance(value, str) and len(value) <= 24:
            try:
                value = float(value)
            except ValueError:
                return None
        if self.whole and type(value) is float and value.is_integer():  # 1e6, and "12" in a link
            value = int(value)
        if type(value) not in ((int,) if self.whole else (int, float)) or not self.lowest <= value <= self.highest:  # type: ignore[operator]
            return None
        return value if self.whole else float(value)  # type: ignore[return-value, arg-type]

    @property
    def must_be(self) -> Message:
        """The rule that an answer must satisfy."""
        if self.choices:
            return N_("{choices}", choices=" / ".join(map(str, self.choices)))
        if self.whole:
            return N_("a whole number from {lowest} to {highest}", lowest=int(self.lowest), highest=int(self.highest))
        return N_("a number above 0 and below 1")


class UnansweredError(CheckpointError):
    """Weights that fit several models.

    Attributes:
        questions: what decides which one, those that are answered among them.
    """

    def __init__(self, message: Message, questions: tuple[Question, ...], answers: Mapping[str, Value]) -> None:
        super().__init__(message)
        self.questions, self.answers = questions, answers


def divisors(n: int) -> tuple[int, ...]:
    return tuple(d for d in range(1, min(n, 256) + 1) if n % d == 0)


def n_heads(d_model: int) -> Question:
    return Question("n_heads", N_("How many attention heads has a layer?"), divisors(d_model))


NORM_ORDER = Question(
    "norm_order", N_("Is the norm after a sublayer (post-norm) or before it (pre-norm)?"), ("post", "pre")
)
NORM = Question("norm", N_("Which norm do the layers have?"), ("layer_norm", "rms_norm"))
BARE_NORM = replace(NORM, usual="layer_norm", insists=True)  # none has a bias, as in code that leaves them out
ACTIVATION = Question(
    "activation",
    N_("Which activation function does the feed-forward network use?"),
    (*get_args(Activation), OTHERWISE),
    refused={
        OTHERWISE: N_("the feed-forward network would use an activation function that none of VizFormer's models has")
    },
)
CAUSAL = Question("causal", N_("Does each position see only itself and earlier ones (a causal mask)?"), (False, True))
MASKED = Question(
    "causal",
    N_("Does each position of the decoder see only itself and earlier ones (a causal mask)?"),
    (True, False),
    usual=True,
    insists=True,
    refused={
        False: N_(
            "without a causal mask each position of the decoder sees the tokens that it has to predict, "
            "in training too (lesson Masks)"
        )
    },
)
SCALED = Question(
    "scaled_embedding",
    N_("Are the token embeddings multiplied by √d_model before positions are added?"),
    (False, True),
)
SCALED_ROWS = Question(
    "scaled_rows",
    N_("If embeddings are multiplied by √d_model: before positions are added, or the sum of both?"),
    ("tokens", "sum"),
    usual="tokens",
    insists=True,
    moot={"scaled_embedding": (False,), "positions": ("rope", "rope_pairs", "alibi", "none")},
)
KNOWN_CODE = Question(
    "known_code",
    N_("Does the model compute exactly what the code with these tensor names computes, with no changes?"),
    (True, False),
    usual=True,
    refused={False: N_("a file of weights does not say what a changed forward computes")},
    stands_for=dict(
        norm_order="pre", norm="layer_norm", causal=True, score_scale="root_of_d_head", scaled_embedding=False
    ),
)
TIED = Question(
    "tied",
    N_(
        "The file has no output layer that predicts tokens: are the logits computed with the embedding table "
        "(weight tying)?"
    ),
    (False, True),
    usual=False,
    insists=True,
)
LOGIT_SCALE = Question(
    "logit_scale",
    N_("What are the logits divided by?"),
    ("nothing", "root_of_d_model", OTHERWISE),
    usual="nothing",
    insists=True,
    refused={OTHERWISE: N_("the logits would be divided by another number, or bounded by a soft cap")},
)
ATTENTION_OVER = Question(
    "attention_over",
    N_("Does attention run over the tokens of a text, or over the texts of a batch (batch_first was forgotten)?"),
    ("tokens", "batch"),
    usual="tokens",
    insists=True,
)
POSITIONS = Question(
    "positions", N_("Which positional encoding does the model use?"), ("sinusoidal", "sinusoidal_halves", "none")
)
NORM_EPS = Question(
    "norm_eps",
    N_("How large is ε, which a norm adds to the variance?"),
    usual=1e-5,
    likely=(1e-3, 1e-5, 1e-6, 1e-8, 1e-12),
    lowest=1e-30,
    highest=0.5,
)
MAX_POSITIONS = Question(
    "max_positions", N_("How many tokens may a text have?"), usual=512, whole=True, lowest=1, highest=32_768
)


def first_position(name: str, rows: Sequence[int]) -> Question:
    """The question with which row of a learned table positions begin; earlier rows are the padding's or unused."""
    text = N_("Which row of {name} is added to the first token?", name=shown(name))
    why = N_("positions would be counted in another way than one by one from a row of the table on")
    return Question("first_position", text, (*rows, OTHERWISE), usual=0, insists=True, refused={OTHERWISE: why})


def waves(answers: dict[str, Value]) -> dict[str, Any]:
    """The option for the layout of sinusoids; it also shortens the answer "sinusoidal_halves" to "sinusoidal"."""
    if answers.get("positions") != "sinusoidal_halves":
        return {}
    answers["positions"] = "sinusoidal"
    return {"sinusoids": "halves"}


def is_applied(where: str) -> Question:
    """The question whether a final norm with scale 1 and shift 0, untrained or unused, is applied."""
    text = N_("Is {norm}, whose weights are exactly 1 and 0, applied after the last layer?", norm=where)
    return Question("final_norm", text, (True, False), usual=True, insists=True)


def source_embedding(names: tuple[str, str]) -> Question:
    """The question which of two embedding tables is the encoder's."""
    return Question("source_embedding", N_("Which table of embeddings is the source's (the encoder's)?"), names)


def marks(vocab_size: int) -> tuple[Question, ...]:
    """The tokens with which an encoder-decoder's target begins and ends, and that which fills a batch."""
    return (
        Question("bos_id", N_("Which token id begins a target?"), whole=True, highest=vocab_size - 1, optional=True),
        Question("eos_id", N_("Which token id ends a target?"), whole=True, highest=vocab_size - 1, optional=True),
        Question(
            "pad_id", N_("Which token id is the padding of targets?"), whole=True, highest=vocab_size - 1, optional=True
        ),
    )


# Ours <- what the field is called beside the weights, with what its values mean where they are not ours.
_FUNCTIONS = {**ACTIVATIONS, "gelu_tanh": "gelu_tanh"}
_NORM_FIRST = {True: "pre", False: "post"}
_FIELDS: Mapping[str, Mapping[str, Mapping[Any, Value] | None]] = {
    "n_heads": dict.fromkeys(
        ("n_heads", "n_head", "num_heads", "nhead", "nheads", "num_attention_heads", "heads", "h", "num_head", "head")
    ),
    "norm_order": {
        "norm_order": None,
        **dict.fromkeys(("norm_first", "pre_norm", "prenorm", "normalize_before"), _NORM_FIRST),
    },
    "activation": dict.fromkeys(("activation", "activation_function", "hidden_act", "act", "act_fn"), _FUNCTIONS),
    "causal": {**dict.fromkeys(("causal", "is_causal")), "attention_dir": {"causal": True, "bidirectional": False}},
    "norm": {
        "norm": None,
        "normalization_type": {
            **dict.fromkeys(("LN", "LNPre"), "layer_norm"),
            **dict.fromkeys(("RMS", "RMSPre"), "rms_norm"),
            None: "none",
        },
    },
    **{name: {name: None} for name in (*("logit_scale", "final_norm", "first_position", "scaled_rows"),)},
    "tied": dict.fromkeys(("tied", "tie_weights", "weight_tying", "tie_word_embeddings")),
    "score_scale": {"score_scale": None, "use_attn_scale": {False: "nothing"}},
    "attention_over": {"attention_over": None, "batch_first": {True: "tokens"}},
    "residual": {"residual": None, "parallel_attn_mlp": {True: "parallel", False: "sequential"}},
    "scaled_embedding": dict.fromkeys(("scaled_embedding", "scale_embedding")),
    "positions": dict.fromkeys(("positions",)),
    "norm_eps": dict.fromkeys(("norm_eps", "layer_norm_eps", "layer_norm_epsilon", "eps")),
    "max_positions": dict.fromkeys(
        ("max_positions", "max_len", "block_size", "max_seq_len", "context_length", "n_positions", "n_ctx")
    ),
    "bos_id": dict.fromkeys(("bos_id", "bos_token_id", "bos_idx")),
    "eos_id": dict.fromkeys(("eos_id", "eos_token_id", "eos_idx")),
    "pad_id": dict.fromkeys(("pad_id", "pad_token_id", "pad_idx", "trg_pad_idx", "tgt_pad_idx")),
    "source_embedding": dict.fromkeys(("source_embedding",)),
}


class Answers(NamedTuple):
    """The answers by name, whose each is, and a sentence about each."""

    values: dict[str, Value]
    taken: dict[str, Taken]
    notes: tuple[Message, ...]


def resolve(questions: Sequence[Question], given: Mapping[str, object], said: Said, file: str) -> Answers:
    """The answers, and for each of them where it comes from.

    Raises:
        UnansweredError: questions that are left.
    """
    refuse(_impossible(questions, given), questions, file)
    answers = known(questions, given, said)
    refuse(_dropped(questions, given, said, answers.values), questions, file)
    if refused := [
        N_("{name}={value}: {why}", name=q.name, value=str(value), why=q.refused[value])
        for q in questions
        if (value := answers.values.get(q.name)) is not None and value in q.refused
    ]:
        raise CheckpointError(
            "{file} holds a model that does not open here: {problems}.", file=file, problems=listed(refused)
        )
    unheard = [q for q in questions if q.decides(answers.values) and answers.taken.get(q.name) in (None, "usual")]
    left = [q for q in unheard if q.usual is None and not q.optional]
    if left or not any(value is not None for value in given.values()):
        left = [q for q in unheard if q in left or q.insists]
    if left:
        raise _unanswered(questions, left, answers.values, file)
    return answers


def trials(
    questions: Sequence[Question], given: Mapping[str, object], said: Said, decisive: str
) -> Iterator[dict[str, Value]]:
    """Answers under which the weights may open: what is known, else the first of the choices; `decisive` has all."""
    read = {q.name: q.read(given.get(q.name)) for q in questions}
    possible = {q.name: read[q.name] for q in questions if read[q.name] is not None and read[q.name] not in q.refused}
    answers = known(questions, possible, said).values
    first = {q.name: q.choices[0] for q in questions if q.choices and q.decides(answers)} | answers
    for question in questions:
        if question.name == decisive and decisive not in answers:
            yield from ({**first, decisive: choice} for choice in question.choices)
            return
    yield first


def known(questions: Sequence[Question], given: Mapping[str, object], said: Said) -> Answers:
    """The answers that were given or stand beside the weights, or are usual; none to what decides nothing under them."""
    found: dict[str, tuple[Value, Taken, Message]] = {}
    for question in questions:
        name = question.name
        beside = _beside(question, said)
        if given.get(name) is not None:
            value = _sure(question.read(given[name]))
            note = N_("{name} = {value}: given when the model was opened", name=name, value=str(value))
            if beside is not None and beside[2] != value:
                note = N_(
                    "{name} = {value}: given when the model was opened, although {where} says {other}",
                    name=name,
                    value=str(value),
                    where=shown(beside[0]),
                    other=str(beside[2]),
                )
            found[name] = value, "given", note
        elif beside is not None:
            where, key, value = beside
            note = N_(
                "{name} = {value}: {where} says {field}",
                name=name,
                value=str(value),
                where=shown(where),
                field=shown(key),
            )
            found[name] = value, "beside", note
        elif question.usual is not None:
            note = N_("{name} = {value}: the usual value; no file gives it", name=name, value=str(question.usual))
            found[name] = question.usual, "usual", note
    values = {name: answer[0] for name, answer in found.items()}
    kept = {q.name: found[q.name] for q in questions if q.name in found and q.decides(values)}
    return Answers(
        {name: answer[0] for name, answer in kept.items()},
        {name: answer[1] for name, answer in kept.items()},
        tuple(answer[2] for answer in kept.values()),
    )


def _sure(value: Value | None) -> Value:
    if value is None:
        raise TypeError("an answer that was not checked")
    return value


def _impossible(questions: Sequence[Question], given: Mapping[str, object]) -> list[Message]:
    known = {question.name: question for question in questions}
    return [
        N_("{name} is not a question here", name=shown(name))
        if name not in known
        else N_("{name}={value}: it must be {rule}", name=name, value=shown(value), rule=known[name].must_be)
        for name, value in given.items()
        if value is not None and (name not in known or known[name].read(value) is None)
    ]


def _dropped(
    questions: Sequence[Question], given: Mapping[str, object], said: Said, answers: Mapping[str, Value]
) -> list[Message]:
    """Messages about answers that differ from the usual one, but have no effect under the other answers."""
    return [
        N_(
            "{name}={value} has no effect where {others}: leave it out, or give another answer to {names}",
            name=q.name,
            value=str(value),
            others=", ".join(f"{name}={answers[name]}" for name in under),
            names=", ".join(under),
        )
        for q in questions
        if (under := [name for name, values in q.moot.items() if answers.get(name) in values])
        if (value := q.read(given.get(q.name))) is not None and q.usual is not None
        if value not in (q.usual, "none", (beside := _beside(q, said)) and beside[2])
    ]


def refuse(wrong: list[Message], questions: Sequence[Question], file: str) -> None:
    """Raises a CheckpointError that names what is wrong with the answers to these questions, if anything is."""
    if wrong:
        raise CheckpointError(
            "{file} cannot be opened like this: {problems}. You can give: {names}.",
            file=file,
            problems=listed(wrong),
            names=", ".join(question.name for question in questions) or "-",
        )


def _beside(question: Question, said: Said) -> tuple[str, str, Value] | None:
    """The answer that files beside the weights give: place, field, answer; None without one, or with several."""
    found: list[tuple[str, str, Value]] = []
    for where, fields in said.items():
        for key, meaning in _FIELDS.get(question.name, {}).items():
            value = fields.get(key)
            if meaning is not None:
                known = key in fields and isinstance(value, (bool, str, type(None)))
                value = meaning.get(value) if known else None
            if value is not None and (answer := question.read(value)) is not None:
                found.append((where, key, answer))
    return found[0] if found and all(answer == found[0][2] for __, __, answer in found) else None


def _unanswered(
    questions: Sequence[Question], left: Sequence[Question], answers: Mapping[str, Value], file: str
) -> UnansweredError:
    lines = tuple(
        N_("{name} ({text}): {rule}", name=question.name, text=question.text, rule=question.must_be)
        for question in left
    )
    heard = {name: value for name, value in answers.items() if name not in {question.name for question in left}}
    taken = ", ".join(f"{name}={value}" for name, value in heard.items())
    example = ", ".join(f"{question.name}=..." for question in left)
    message = N_(
        "{file} contains only weights, which fit several models. The open questions: {questions}. Answer "
        "them: vf.load(path, {example}).",
        file=file,
        questions=lines,
        example=example,
    )
    if taken:
        message = N_("{message} If you do not answer, VizFormer takes: {taken}.", message=message, taken=taken)
    return UnansweredError(message, tuple(questions), heard)
