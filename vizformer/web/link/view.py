"""What a view consists of: its fields, their defaults, and what a link may say for each.

Another field is one line in `View`. Values in the address do not depend on the language, and what a field is called
there never changes (`link_name`): links live longer than names in the code.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import Field, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from vizformer.messages import N_, Message
from vizformer.web.link import branch as taken_by_hand
from vizformer.web.link import edits as set_by_hand
from vizformer.web.link import generation_settings, languages, line_settings, link_settings, packed_text
from vizformer.web.link.link_settings import Codec, UnusableError, whole
from vizformer.web.link.model_ref import TRAINING, ModelRef

if TYPE_CHECKING:
    from vizformer.text import Token

Kind = Literal["encoder", "decoder", "cross"]  # self-attention of the encoder, of the decoder; cross-attention
KINDS: tuple[str, ...] = get_args(Kind)
Picture = Literal["map", "lines", "text"]  # of the heads: one as a heatmap, several as lines, one in the text itself
PICTURES: tuple[str, ...] = get_args(Picture)
Over = Literal["one", "mean", "max", "rollout"]  # what is drawn of a layer: one head, or all of them together
OVERS: tuple[Over, ...] = get_args(Over)
Without = Literal["none", "first", "marks", "sinks"]  # keys that are left out of the pictures
WITHOUTS: tuple[Without, ...] = get_args(Without)
Level = Literal["tokens", "words"]  # what the rows and columns of the large map are
LEVELS: tuple[Level, ...] = get_args(Level)
Order = Literal["layer", "habit", "entropy", "distance", "first"]  # of the small maps of all heads
ORDERS: tuple[Order, ...] = get_args(Order)
Numbers = Literal["weights", "scores"]  # of a head: after the softmax, or before it
NUMBERS: tuple[Numbers, ...] = get_args(Numbers)
NOTES, PAPER = "notes-", "paper"  # of a slide: the speaker's notes to it; all parts of a lesson, to be printed
Material = Literal["sentence", "toy"]  # what a layer is worked out for: the typed sentence, or the lectures' toy
MATERIALS: tuple[str, ...] = get_args(Material)
# Shapes of texts in a link, and what is said of one that has another.
POSITIONS = "([0-9]{1,4}(,[0-9]{1,4}){0,99})?", N_("it must be a list of positions such as 3,5")
PART = "[a-z]{0,20}", N_("it must be the name of a part of a lesson")
SLIDE = rf"off|{PAPER}|({NOTES})?(laboratory|(words|try|wrong)[2-9]?)", N_("it must be the name of a slide")
RUN = rf"({TRAINING})?", N_("it must be the name of a training")

LARGEST = 99_999  # no model has more layers, heads or positions


def link_name(field: "Field[Any]") -> str:
    """What the address calls a field of the view: its name, or the one that links have had from the first."""
    name: str = field.metadata.get("link") or field.name
    return name


def _choice(default: str, choices: Collection[str], label: Message, link: str = "") -> Any:
    def read(value: str) -> str:
        if value not in choices:
            raise UnusableError(N_("it must be one of {choices}", choices=", ".join(choices)))
        return value

    return field(default=default, metadata={"read": read, "label": label, "link": link})


def _index(label: Message, default: int | None = 0) -> Any:
    def read(value: str) -> int:
        if (number := whole(value, LARGEST)) is None:
            raise UnusableError(N_("it must be a whole number, 0 or above"))
        return number

    return field(default=default, metadata={"read": read, "label": label})


def _text(default: str, label: Message) -> Any:
    return field(default=default, metadata={"read": packed_text.read, "write": packed_text.write, "label": label})


def _model(default: ModelRef, label: Message) -> Any:
    return field(default=default, metadata={"read": ModelRef.parse, "label": label})


def _other_model(label: Message) -> Any:
    def read(value: str) -> ModelRef | None:
        return ModelRef.parse(value) if value else None

    return field(default=None, metadata={"read": read, "label": label})


def _coded(codec: Codec[Any], label: Message, link: str = "") -> Any:
    """A field that holds what `codec` writes, in the one way in which it writes it."""
    return field(
        default="", metadata={"read": lambda text: codec.write(codec.read(text)), "label": label, "link": link}
    )


def _shaped(shape: tuple[str, Message], label: Message, default: str = "") -> Any:
    def read(value: str) -> str:
        if not re.fullmatch(shape[0], value):
            raise UnusableError(shape[1])
        return value

    return field(default=default, metadata={"read": read, "label": label})


def _language(label: Message) -> Any:
    def read(value: str) -> str:
        code = languages.match(value)
        if value and code is None:
            raise UnusableError(N_("it must be one of {choices}", choices=", ".join(languages.LANGUAGES)))
        return code or ""

    return field(default="", metadata={"read": read, "label": label})


@dataclass(frozen=True)
class View:
    model: ModelRef = _model(ModelRef("bundled", "zh-en"), N_("model"))  # noqa: RUF009 (a field, as the others)
    text: str = _text("我有一只猫。", N_("sentence"))
    target: str = _text("", N_("target sentence"))  # empty: the model's own translation
    kind: Kind = _choice("encoder", KINDS, N_("attention"), link="site")  # noqa: RUF009 (a field, as the others)
    picture: Picture = _choice("map", PICTURES, N_("picture"))  # noqa: RUF009 (a field, as the others)
    order: Order = _choice("layer", ORDERS, N_("order of the heads"), link="sort")  # noqa: RUF009 (a field, as the others)
    over: Over = _choice("one", OVERS, N_("heads together"))  # noqa: RUF009 (a field, as the others)
    without: Without = _choice("none", WITHOUTS, N_("keys left out"))  # noqa: RUF009 (a field, as the others)
    level: Level = _choice("tokens", LEVELS, N_("rows and columns"))  # noqa: RUF009 (a field, as the others)
    layer: int = _index(N_("layer"))
    head: int = _index(N_("head"))
    query: int | None = _index(N_("query"), None)  # None: what `usual_query` says
    key: int | None = _index(N_("key"), None)  # the cell of the query that is taken apart
    numbers: Numbers = _choice("weights", NUMBERS, N_("numbers of the heads"))  # noqa: RUF009 (a field, as the others)
    lines: str = _coded(line_settings, N_("lines"))  # what is drawn of the line view
    position: int | None = _index(N_("position"), None)  # after which the next token is predicted; None: the page says
    step: int = _index(N_("step"))  # of the arithmetic
    material: Material = _choice("sentence", MATERIALS, N_("material"))  # noqa: RUF009 (a field, as the others)
    edits: str = _coded(set_by_hand, N_("numbers set by hand"))
    toy: str = _coded(set_by_hand, N_("numbers set by hand in the toy"))
    second: str = _text("", N_("second sentence"))  # of a lesson; empty: the one that it proposes
    third: str = _text("", N_("third sentence"))
    memory: str = _text("", N_("sentence whose memory is borrowed"))
    batch: str = _text("", N_("second sentence of a batch"))
    hidden: str = _shaped(POSITIONS, N_("hidden words"))  # on the page Fill in the blank, e.g. "3,5"
    sampling: str = _coded(generation_settings, N_("settings of the generation"))
    branch: str = _coded(taken_by_hand, N_("tokens taken by hand"))
    new: int = _index(N_("new token"))  # on the page Generation
    part: str = _shaped(PART, N_("part"))  # of a lesson; empty: the first
    # what is presented of a part of a lesson, one at a time; off: a page
    slide: str = _shaped(SLIDE, N_("slide"), "off")
    settings: str = _coded(link_settings, N_("settings of the lessons"), link="dials")
    other: ModelRef | None = _other_model(N_("model beside it"))  # noqa: RUF009 (a field); None: the same model
    run: str = _shaped(RUN, N_("training"))  # that the page Train shows
    beside: str = _shaped(RUN, N_("training beside it"))  # whose curves are drawn with those of `run`
    lang: str = _language(N_("language"))  # empty: the browser's

    def query_of(self, tokens: "Sequence[Token]") -> int:
        """The query that is looked at among `tokens`."""
        return usual_query(tokens) if self.query is None else min(self.query, len(tokens) - 1)


def usual_query(tokens: "Sequence[Token]") -> int:
    """The last token of the text that is a word or a part of one.

    Not the first token: where the model reads from left to right it sees only itself.
    """
    said = (i for i in reversed(range(len(tokens))) if not tokens[i].special and any(map(str.isalnum, tokens[i].text)))
    return next(said, len(tokens) - 1)


def written_query(query: int, tokens: "Sequence[Token]") -> int | None:
    """A chosen query as the view keeps it; the usual one stays the usual one when the text changes."""
    return None if query == usual_query(tokens) else query
