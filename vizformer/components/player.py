"""The generation player: a text that grows token by token, what each was chosen from, and its row of attention.

    selection = mount(written, selected=selection, key="player")
    to_html(written)                                               # the same, as a file

All steps go to the browser at once: stepping, playing and scrubbing ask the server for nothing.  A token that someone
takes instead of the chosen one changes `PlayerSelection.branch`; the page writes on from there and mounts the new text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vizformer.components import _mount
from vizformer.components.packing import HeadsPayload, count, nearest
from vizformer.components.tokens import Token
from vizformer.word_tables import words_of

DecoderKind = Literal["decoder", "cross"]

ENGLISH: Mapping[str, str] = words_of(__file__)

_COMPONENT = _mount.Component("player", ENGLISH)


@dataclass(frozen=True)
class Taken:
    step: int
    id: int


@dataclass(frozen=True)
class Steps:
    """The candidates of each generation step: `count` a step, the most probable first."""

    ids: Sequence[int]  # the token of each step [steps]
    candidates: NDArray[np.integer]  # ids [steps, count]
    names: Mapping[int, str]  # text of every id among the candidates
    # before, after: probability before and after the cut [steps, count]
    before: NDArray[np.floating] = field(repr=False)
    after: NDArray[np.floating] = field(repr=False)
    # 0 kept, 1 top-k, 2 top-p, 3 min-p, 4 temperature 0, 5 a rule of the model [steps, count]
    cut: NDArray[np.integer] = field(repr=False)
    kept: Sequence[int]  # tokens left to draw from [steps]
    by_hand: Sequence[bool]
    vocab_size: int
    end: str  # why the text ends: "eos", "limit" or "context"


@dataclass(frozen=True)
class Written:
    """A generated text with everything the player shows; `tokens` begin with `start` that were given."""

    tokens: Sequence[Token]
    start: int
    steps: Steps
    # the heads of each kind of attention; a row for each token but the last, which has not been read
    kinds: Mapping[DecoderKind, HeadsPayload]
    source: Sequence[str]  # texts of the encoder's tokens, the keys of "cross"
    branch: str  # what was asked to be taken by hand, see `read_branch`
    name: str  # another one for another text: tells the browser when the text is a new one

    def __post_init__(self) -> None:
        n = len(self.steps.ids)
        if n == 0 or self.start < 1 or len(self.tokens) != self.start + n:
            raise ValueError(f"{len(self.tokens)} tokens are not {self.start} at the start and {n} steps")
        shape = np.shape(self.steps.candidates)
        arrays = {name: np.shape(getattr(self.steps, name)) for name in ("before", "after", "cut")}
        if shape[:1] != (n,) or any(other != shape for other in arrays.values()):
            raise ValueError(f"candidates of shape {shape} and {arrays} do not fit {n} steps")
        for kind, payload in self.kinds.items():
            rows, keys = payload.shape[2:]
            if (rows, keys) != (expected := (len(self.tokens) - 1, len(self.source) or 1 if kind == "cross" else rows)):
                raise ValueError(f"{kind} heads of {rows} x {keys} positions do not fit {expected}")


@dataclass(frozen=True)
class PlayerSelection:
    """The selection in the player, counted from 0.

    `kind`, `layer`, `head`: the attention map.
    `branch`: tokens taken by hand, "step:id,step:id" (see `read_branch`).
    """

    step: int = 0
    kind: DecoderKind = "cross"
    layer: int = 0
    head: int = 0
    branch: str = ""

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> "PlayerSelection":
        """Reads what a browser sent; anything that is not what it should be becomes the default."""
        branch = value.get("branch")
        return cls(
            step=count(value.get("step")) or 0,
            kind="decoder" if value.get("kind") == "decoder" else "cross",
            layer=count(value.get("layer")) or 0,
            head=count(value.get("head")) or 0,
            branch=branch if isinstance(branch, str) and read_branch(branch) is not None else "",
        )

    def within(self, written: Written) -> "PlayerSelection":
        """The nearest selection that the text has; the branch stays as it is."""
        kind: DecoderKind = self.kind if self.kind in written.kinds else next(iter(written.kinds))
        layers, heads = written.kinds[kind].shape[:2]
        step = nearest(self.step, len(written.steps.ids))
        return PlayerSelection(step, kind, nearest(self.layer, layers), nearest(self.head, heads), self.branch)


def read_branch(text: str) -> tuple[Taken, ...] | None:
    """ "3:17,8:254" as what was taken at which step, in order; None where it is anything else."""
    taken = []
    for part in text.split(",") if text else ():
        step, _, id = part.partition(":")
        if not (step.isascii() and step.isdigit() and id.isascii() and id.isdigit() and len(part) <= 18):
            return None
        taken.append(Taken(int(step), int(id)))
    steps = [one.step for one in taken]
    return tuple(taken) if steps == sorted(set(steps)) else None


def branch_text(taken: Sequence[Taken]) -> str:
    """Writes the tokens taken by hand as "step:id,step:id", as `read_branch` reads it."""
    return ",".join(f"{one.step}:{one.id}" for one in taken)


def peek(*, key: str, selected: PlayerSelection | None = None) -> PlayerSelection:
    """The selection that the next `mount` with this key and `selected` will return, before the text is generated."""
    shown, _ = _mount.current(key, selected, PlayerSelection.parse, ahead=True)
    return shown or PlayerSelection()


def mount(written: Written, *, selected: PlayerSelection | None = None, key: str) -> PlayerSelection:
    """Shows the player on a Streamlit page; what is selected now. `peek` tells the branch that the text has to follow."""
    wish = None if selected is None else selected.within(written)
    shown, echo = _mount.current(key, wish, lambda report: PlayerSelection.parse(report).within(written))
    data, columns = _data(written)
    sent = None if echo.sent is None else asdict(echo.sent.within(written))
    _COMPONENT.mount(data, columns, version=echo.version, selected=sent, key=key)
    return (shown or PlayerSelection()).within(written)


def to_html(written: Written, *, selected: PlayerSelection | None = None, title: str = "Generation") -> _mount.Html:
    """Returns the player as one HTML file that works without a server; tokens cannot be taken in it."""
    data, columns = _data(written)
    start = (selected or PlayerSelection(branch=written.branch)).within(written)
    return _COMPONENT.page(data, columns, selected=asdict(start), title=title)


def _data(written: Written) -> tuple[dict[str, Any], dict[str, _mount.Column]]:
    steps = written.steps
    taken = [Taken(i, int(id)) for i, (id, given) in enumerate(zip(steps.ids, steps.by_hand, strict=True)) if given]
    columns: dict[str, _mount.Column] = {
        "before": np.ascontiguousarray(steps.before, dtype=np.float32).ravel(),
        "after": np.ascontiguousarray(steps.after, dtype=np.float32).ravel(),
        "cut": np.ascontiguousarray(steps.cut, dtype=np.uint8).ravel(),
    }
    kinds = {}
    for kind, payload in written.kinds.items():
        kinds[kind] = {
            "shape": list(payload.shape),
            "held": payload.held,
            "chosen": None if payload.complete else list(payload.chosen),
        }
        for name in ("weights", "reasons"):
            if name in payload.columns:
                columns[f"{kind}_{name}"] = payload.columns[name]
    data = {
        "tokens": [{"text": token["text"], "special": bool(token.get("special", False))} for token in written.tokens],
        "start": written.start,
        "source": list(written.source),
        "vocab_size": steps.vocab_size,
        "candidates": {
            "count": int(steps.candidates.shape[1]),
            "ids": np.asarray(steps.candidates).ravel().tolist(),
            "names": {str(id): text for id, text in steps.names.items()},
        },
        "steps": {"ids": list(steps.ids), "kept": list(steps.kept), "by_hand": list(steps.by_hand)},
        "end": steps.end,
        "kinds": kinds,
        "taken": [asdict(one) for one in taken],
        "branch": written.branch,
        "made": written.name,
    }
    return data, columns
