"""Which model a reader looks at, as a link names it.

    zh-en                                    a bundled model
    train-0123456789                         a model that was trained on this server
    train-0123456789@200                     the same after 200 steps of its training
    models/tiny-llama                        the server's folder (`vizformer --models DIR`)
    models/nano.pt;n_heads=4;norm_order=pre  bare weights: what they are assumed to be belongs to the reference
    hub/openai-community/gpt2@main           fetched from a hub, in a revision
    upload/4f0c6ad2e9b10d37                  put up by a reader, in that session only
    path/9b1d4f0c6ad2                        opened by its path, by the person at this computer
    code/my_model                            code that the server was started with (`vizformer --model my_model.py:load`)
    models/tiny-llama;dtype=bfloat16         ... computed in another precision

A link is parsed once, where it is read (`vizformer.web.link.view`); everything behind passes the whole `ModelRef`.
A reader never learns where on the server a model lies, and what a link says leads to nothing but what is listed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from vizformer.errors import CheckpointError

Source = Literal["bundled", "models", "hub", "upload", "path", "code", "training"]

USUAL_DTYPE = "float32"
TRAINING = r"train-[0-9a-f]{10}(-[0-9]{1,3})?"  # names of live trainings and of their models
FILE_NAME = r"\w[\w.+ -]{0,79}"  # nothing that means something in a path or to a terminal; no hidden folder
_PART = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}"  # (as vizformer.checkpoints.files.hub has it, without torch)
STEP = "[0-9]{1,6}"  # of a training
_NAMES: dict[Source, str] = {
    "models": FILE_NAME,
    "hub": rf"{_PART}/{_PART}",
    "upload": "[0-9a-f]{16}",
    "path": "[0-9a-f]{12}",
    "code": r"[^\W\d][\w.]{0,79}",
}
_REVISION = "(?:@([A-Za-z0-9][A-Za-z0-9_./-]{0,79}))?"
# In links of before: which answers a text had decided, which changed no number; and a mapping of tensors, which did.
_SETTLED, _MAPPED, _LONGEST_MAPPING = "settled", "mapping", 4_000
# The longest answers are names of tensors.
_ANSWERS = (
    "((?:;(?!mapping=)[a-z_]{1,20}=[A-Za-z0-9_.+-]{1,300}){0,24}"
    rf"(?:;mapping=[A-Za-z0-9_-]{{1,{_LONGEST_MAPPING}}})?(?:;dtype=[A-Za-z0-9_.+-]{{1,96}})?)"
)
_FROM_ELSEWHERE = {
    source: re.compile(
        f"{source}/({name}){_REVISION if source == 'hub' else '()'}{_ANSWERS if source != 'code' else '()'}"
    )
    for source, name in _NAMES.items()
}


@dataclass(frozen=True)
class ModelRef:
    """One model, by where it comes from and what it is called there."""

    source: Source
    name: str
    revision: str = ""  # of a model of a hub, empty for the newest; of a training the step, empty for its end
    # what bare weights are assumed to be, as (field, value), in the order of the link
    answers: tuple[tuple[str, str], ...] = ()
    dtype: str = USUAL_DTYPE  # the precision that it computes in; nobody has looked yet whether it can
    # says which version of its files is meant: another model that takes their place has another one. Only what keys a
    # cache has a stamp (`vizformer.web.catalogue.sources.stamped`), a link never
    stamp: str = ""
    mapped: bool = False  # whether the link mapped tensors to roles, which none does any more

    @classmethod
    def parse(cls, text: str) -> "ModelRef":
        """The reference that a link means.

        What reads like none of the others is taken for the name of a bundled model, be there such a model or not.
        """
        source, slash, __ = text.partition("/")
        if slash and source in _FROM_ELSEWHERE and (found := _FROM_ELSEWHERE[source].fullmatch(text)):
            name, revision, said = found.groups()
            pairs = [item.partition("=")[::2] for item in said.split(";")[1:]]
            dtype = dict(pairs).get("dtype", USUAL_DTYPE)
            answers = tuple((field, value) for field, value in pairs if field not in ("dtype", _MAPPED, _SETTLED))
            return cls(source, name, revision or "", answers, dtype, mapped=_MAPPED in dict(pairs))
        if found := re.fullmatch(f"({TRAINING})(?:@({STEP}))?", text):
            return cls("training", found[1], str(int(found[3])) if found[3] else "")
        return cls("bundled", text)

    def __str__(self) -> str:
        where = self.id if self.source in ("bundled", "training") else f"{self.source}/{self.id}"
        mapped = [(_MAPPED, "gone")] if self.mapped else []
        dtype = [("dtype", self.dtype)] if self.dtype != USUAL_DTYPE else []
        said = (*self.answers, *mapped, *dtype)
        return "".join([where, *(f";{field}={value}" for field, value in said)])

    @property
    def id(self) -> str:
        return f"{self.name}@{self.revision}" if self.revision else self.name

    @property
    def is_from_elsewhere(self) -> bool:
        """Whether its files are somebody else's: neither bundled nor trained here."""
        return self.source in _FROM_ELSEWHERE

    @property
    def base(self) -> "ModelRef":
        """The model alone: no answers, the usual precision, whatever its files are now."""
        return ModelRef(self.source, self.name, self.revision)

    @property
    def given(self) -> dict[str, Any]:
        """What `vizformer.load` is given beside the path and the precision.

        Raises:
            CheckpointError: the link mapped tensors to roles.
        """
        if self.mapped:
            raise CheckpointError(
                "This link said which tensor of {name} plays which role. Links say that no more: in Python "
                "vf.load(path, config=..., mapping=...) opens such weights, and the page Open your own says what else does.",
                name=self.name,
            )
        return dict(self.answers)

    @property
    def files(self) -> "ModelRef":
        """The reference in the usual precision, for facts about the files, which do not depend on the precision."""
        return replace(self, dtype=USUAL_DTYPE)

    def under(self, answers: Mapping[str, object]) -> "ModelRef":
        """The reference to the same files under other assumptions."""
        return replace(self, answers=tuple((field, str(value)) for field, value in answers.items()), mapped=False)

    def within(self, dtype: str) -> "ModelRef":
        return replace(self, dtype=dtype)
