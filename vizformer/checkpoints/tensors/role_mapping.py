"""A mapping by hand: which tensor of a file plays which role, written by a person, as a dict or a small TOML file.

    left_out = ["projector.weight"]

    [roles]
    "embedding.weight" = "table"
    "layers.#.self_attention.W_Q.weight" = "blocks.#.att.a.weight"
    "layers.#.self_attention.W_K.weight" = { tensor = "blocks.#.att.kv", transpose = true, rows = [0, 64] }

    [answers]
    n_heads = 4

`#` stands for the number of a layer, on both sides; `*` in a tensor's name for that of a head, where each has tensors of
its own, which are joined.  Roles: `vizformer.checkpoints.bare.mapping.roles`.
"""

import json
import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from vizformer.checkpoints.files.untrusted_folder import Folder, damaged, first_line, listed, shown
from vizformer.checkpoints.tensors.questions import Value
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

SUFFIX = ".mapping.toml"  # after the name of the file of weights, beside which it lies
MOST_BYTES, LONGEST_LINE = 2**16, 1000  # of a TOML file; one of the largest models has a tenth of it
MOST_ROLES, LONGEST_NAME = 512, 300
_LARGEST = 10**9
_FIELDS = {"tensor", "transpose", "rows"}
_TABLES = {"roles", "left_out", "answers"}


@dataclass(frozen=True)
class Entry:
    tensor: str  # its name in the file; `#` for the number of a layer, `*` for that of a head
    # whether it is turned over before it is read, so that it is [out, in]; None: as its module is read, which for a
    # parameter without a module may become a question
    transpose: bool | None = None
    # which of its rows it is, from the first up to the one that is not meant any more, after it was turned over; None:
    # all
    rows: tuple[int, int] | None = None

    @property
    def plain(self) -> object:
        """As it is written: the name alone, where nothing else is said."""
        if self.transpose is None and self.rows is None:
            return self.tensor
        said: dict[str, object] = {"tensor": self.tensor}
        if self.transpose is not None:
            said["transpose"] = self.transpose
        if self.rows is not None:
            said["rows"] = list(self.rows)
        return said


@dataclass(frozen=True)
class RoleMapping:
    """Who plays what in a file of weights; complete: what has no role and is not left out keeps it from opening."""

    roles: Mapping[str, Entry]
    left_out: tuple[str, ...] = ()
    answers: Mapping[str, Value] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """As `read` reads it: dicts, lists, strings and numbers."""
        said: dict[str, Any] = {"roles": {role: entry.plain for role, entry in self.roles.items()}}
        if self.left_out:
            said["left_out"] = list(self.left_out)
        if self.answers:
            said["answers"] = dict(self.answers)
        return said

    def to_toml(self) -> str:
        """The text of a file that says the same."""
        lines = ["# Which tensor of the file plays which role, mapped by hand; # is the number of a layer."]
        if self.left_out:
            lines.append(f"left_out = [{', '.join(map(_string, self.left_out))}]")
        lines += ["", "[roles]"]
        for role, entry in self.roles.items():
            lines.append(f"{_string(role)} = {_inline(entry)}")
        if self.answers:
            lines += ["", "[answers]"]
            lines += [f"{name} = {_value(value)}" for name, value in self.answers.items()]
        return "\n".join(lines) + "\n"


def _inline(entry: Entry) -> str:
    said = entry.plain
    if not isinstance(said, dict):
        return _string(entry.tensor)
    return "{ " + ", ".join(f"{name} = {_value(value)}" for name, value in said.items()) + " }"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.17g}" if "e" in f"{value:.17g}" or "." in f"{value:.17g}" else f"{value:.1f}"
    return str(value) if isinstance(value, (int, list)) else _string(str(value))


def _string(text: str) -> str:
    """In TOML, whose basic strings escape as JSON's do (in ASCII; characters beyond 16 bits as \\U)."""
    wide = re.sub(r"[^\u0000-\uffff]", lambda found: f"\0{ord(found[0]):08x}", text)
    return re.sub(r"\\u0000([0-9a-f]{8})", r"\\U\1", json.dumps(wide)).replace("\x7f", "\\u007f")


def read(said: object, where: str = "mapping") -> RoleMapping:
    """A mapping from plain values: {role: tensor}, or {"roles": {...}, "left_out": [...], "answers": {...}}.

    A tensor is its name, or {"tensor": name, "transpose": bool, "rows": [first, end]}.
    """
    if isinstance(said, RoleMapping):
        return said
    if not isinstance(said, Mapping) or not all(isinstance(key, str) for key in said):
        raise _wrong(where, [N_("{value} is no table of roles", value=shown(said))])
    if not _TABLES & said.keys():
        said = {"roles": said}
    wrong: list[Message] = [N_("{name} is not known", name=shown(key)) for key in said if key not in _TABLES]
    roles: Any = said.get("roles", {})
    left_out: Any = said.get("left_out", [])
    answers: Any = said.get("answers", {})
    if not isinstance(roles, Mapping):
        wrong.append(N_("{value} is no table of roles", value=shown(roles)))
        roles = {}
    if not isinstance(left_out, (list, tuple)) or not all(map(_is_name, left_out)):
        wrong.append(N_("left_out must be a list of names of tensors"))
        left_out = []
    if not isinstance(answers, Mapping) or not all(_is_answer(*item) for item in answers.items()):
        wrong.append(N_("answers must be a table of numbers, texts and true or false"))
        answers = {}
    if len(roles) + len(left_out) > MOST_ROLES or len(answers) > MOST_ROLES:
        raise _wrong(where, [N_("it has more than {n} entries", n=MOST_ROLES)])
    entries: dict[str, Entry] = {}
    for role, given in roles.items():
        entry = _entry(given)
        if entry is None or not _is_name(role):
            wrong.append(
                N_(
                    "{role} = {value} must be the name of a tensor, or a table with tensor, transpose (true or false) and "
                    "rows ([first, end])",
                    role=shown(role),
                    value=shown(given),
                )
            )
        else:
            entries[role] = entry
    if wrong:
        raise _wrong(where, wrong)
    return RoleMapping(entries, tuple(left_out), dict(answers))


def _entry(given: object) -> Entry | None:
    if isinstance(given, Entry):
        return given
    if isinstance(given, str):
        return Entry(given) if _is_name(given) else None
    if not isinstance(given, Mapping) or not given.keys() <= _FIELDS or not _is_name(given.get("tensor")):
        return None
    transpose, rows = given.get("transpose"), given.get("rows")
    if transpose is not None and not isinstance(transpose, bool):
        return None
    if rows is None:
        return Entry(given["tensor"], transpose)
    if not isinstance(rows, (list, tuple)) or len(rows) != 2 or not all(type(n) is int for n in rows):
        return None
    first, end = rows
    return Entry(given["tensor"], transpose, (first, end)) if 0 <= first < end <= _LARGEST else None


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and len(re.findall("[#*]", value)) <= 2


def _is_answer(name: object, value: object) -> bool:
    if not isinstance(name, str) or re.fullmatch(r"[a-z_]{1,20}", name) is None:
        return False
    return isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))


def from_toml(text: str, where: str) -> RoleMapping:
    """The mapping in the text of a TOML file that somebody else may have written."""
    if len(text.encode(errors="replace")) > MOST_BYTES or any(len(line) > LONGEST_LINE for line in text.splitlines()):
        raise _wrong(
            where,
            [
                N_(
                    "it has more than {bytes:,} bytes, or lines of more than {n:,} characters",
                    bytes=MOST_BYTES,
                    n=LONGEST_LINE,
                )
            ],
        )
    try:
        return read(tomllib.loads(text), where)
    except (ValueError, RecursionError) as error:
        raise _wrong(where, [N_("it is not TOML ({reason})", reason=first_line(error))]) from error


def _wrong(where: str, problems: list[Message]) -> CheckpointError:
    return CheckpointError(
        "{file} is no mapping of tensors to roles: {problems}. See the page Model report, which writes one.",
        file=shown(where),
        problems=listed(problems),
    )


class ByHand(NamedTuple):
    """A mapping, what the report says of it, and whether nobody gave it: it lies beside the weights."""

    mapping: RoleMapping
    note: Message
    beside: bool = False


def mapping_for(folder: Folder, file: str, given: object = None) -> ByHand | None:
    """The mapping that counts for a file of weights: the given one, else that beside it; None: there is none.

    `given` is a mapping, a dict, or the path of a TOML file; an empty one leaves aside what lies beside the weights.
    """
    if given is None:
        name = f"{file}{SUFFIX}"
        if not folder.has(name):
            return None
        mapping = from_toml(_text(folder.file(name), name), name)
        return ByHand(mapping, _note(mapping, shown(name)), beside=True) if mapping.roles else None
    if isinstance(given, (str, os.PathLike)):
        path = Path(given)
        try:
            text = _text(path, path.name)
        except (OSError, ValueError) as error:
            raise CheckpointError(
                "There is no mapping {file}. Give the path of a TOML file, or a dict.", file=shown(str(given))
            ) from error
        mapping = from_toml(text, path.name)
        return ByHand(mapping, _note(mapping, shown(path.name))) if mapping.roles else None
    mapping = read(given)
    note = N_("mapped by hand: the roles of {n} tensors were given when the model was opened", n=len(mapping.roles))
    return ByHand(mapping, note) if mapping.roles else None


def _note(mapping: RoleMapping, where: str) -> Message:
    return N_("mapped by hand: {file} says the roles of {n} tensors", file=where, n=len(mapping.roles))


def _text(path: Path, name: str) -> str:
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise damaged(name, error) from error
