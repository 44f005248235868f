"""Where the attentions are: modules that project to queries, keys and values, together or apart, for all heads or each."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count, takewhile

from vizformer.checkpoints.bare.structure.names import Module, is_number, steps

_AROUND = r"(?:(?:w|fc|to|in|lin|linear|proj|projection|weight|mat|matrix|layer|dense|attn|attention|input)_?){0,2}"
_AFTER = (
    r"(?:_?(?:w|s|in|input|projs?|projections?|lins?|linears?|layers?|heads?|weights?|fcs?|net|mat|matrix|map|transform|"
    r"dense|embed|vectors?)){0,2}"
)
_LETTERS = {
    "q": re.compile(rf"{_AROUND}(?:q|query|queries|quer){_AFTER}", re.IGNORECASE),
    "k": re.compile(rf"{_AROUND}(?:k|key|keys){_AFTER}", re.IGNORECASE),
    "v": re.compile(rf"{_AROUND}(?:v|val|value|values){_AFTER}", re.IGNORECASE),
}
_FUSED = re.compile(
    rf"{_AROUND}(?:c_)?(?P<letters>[qkv]{{2,3}}|attn|in_proj|query_key_value|c_attn){_AFTER}", re.IGNORECASE
)
_FUSED_WORDS = ("c_attn", "in_proj", "query_key_value")
_FUSED_BY_SHAPE = ("input_projection", "input_proj")  # where its rows are those of three matrices
_GENERIC = re.compile(r"\d|linear|lin|fc|proj|projection|dense|layer|w", re.IGNORECASE)
_NUMBERED = re.compile(
    r"linears?|lin|lins|linear_layers?|(?:in_|input_)?proj(?:ection)?s?|fcs?|w|ws|layers", re.IGNORECASE
)
_ATTENTION = re.compile(r"att|mha|heads?\b|(?:^|[._])(?:sa|self|src|cross)(?:[._]|$)", re.IGNORECASE)
_HEADS = re.compile(r"head", re.IGNORECASE)


@dataclass(frozen=True)
class Projection:
    letters: str  # what its rows hold, in order: "q", "kv", "qkv", ..
    modules: tuple[str, ...]  # one for all heads, or one for each, in order


@dataclass(frozen=True)
class Attention:
    path: str  # the module that holds them, or the list of its heads
    projections: tuple[Projection, ...]
    by_head: bool = False  # whether every head has modules of its own
    numbered: bool = False  # whether only numbers tell them apart (linears.0 to linears.3)
    out: str = ""  # the module that makes the result, where a number says so

    @property
    def inside(self) -> tuple[str, ...]:
        return tuple(module for projection in self.projections for module in projection.modules)


def find(found: Mapping[str, Module]) -> list[Attention]:
    holders: dict[str, dict[str, str]] = {}
    for path, module in found.items():
        said = _letters(path)
        if (
            said is None
            and module.last in _FUSED_BY_SHAPE
            and module.is_matrix
            and module.shape[0] == 3 * module.shape[1]
        ):
            said = module.parent, "qkv"
        if module.is_matrix and said is not None:
            holder, letters = said
            holders.setdefault(holder, {}).setdefault(letters, path)
    complete = {holder: group for holder, group in holders.items() if sorted("".join(group)) == ["k", "q", "v"]}
    attentions = _numbered(found, complete)
    lists: dict[str, dict[int, dict[str, str]]] = {}
    for holder, group in complete.items():
        outer, __, last = holder.rpartition(".")
        counted = steps(last)
        number = int(counted[-1]) if is_number(counted[-1]) else -1
        if number >= 0 and _is_a_head(found, outer, counted, group):
            place = outer if len(counted) == 1 else f"{outer}.{counted[0]}".lstrip(".")
            lists.setdefault(place, {})[number] = group
        else:
            attentions.append(_apart(found, holder, group))
    for place, heads in lists.items():
        if sorted(heads) == list(range(len(heads))):
            attentions.append(
                Attention(
                    place,
                    tuple(
                        Projection(letter, tuple(heads[head][letter] for head in range(len(heads)))) for letter in "qkv"
                    ),
                    by_head=True,
                )
            )
    order = {path: place for place, path in enumerate(found)}
    return sorted(attentions, key=lambda attention: min(order[path] for path in attention.inside))


def _apart(found: Mapping[str, Module], holder: str, group: Mapping[str, str]) -> Attention:
    """A module for queries, one for keys, ...; or a list of them, with one for each head (queries.0, queries.1, ...)."""
    by_letters = {letters: _alike(found, path) for letters, path in group.items()}
    if all(len(paths) == 1 for paths in by_letters.values()):
        return Attention(holder, tuple(Projection(letters, paths) for letters, paths in by_letters.items()))
    projections = tuple(Projection(letter, by_letters[letter]) for letter in "qkv")
    return Attention(group["q"].rpartition(".")[0], projections, by_head=True)


def _alike(found: Mapping[str, Module], first: str) -> tuple[str, ...]:
    """The modules of a list that are like its first one, up to one that is not."""
    if not first.endswith(".0"):
        return (first,)
    places = (f"{first[:-1]}{number}" for number in count())
    return tuple(takewhile(lambda path: path in found and found[path].is_like(found[first]), places))


def _letters(path: str) -> tuple[str, str] | None:
    """(the module that holds it, what its rows are); None where the name does not say."""
    outer, __, last = path.rpartition(".")
    if (letters := _said(last)) is not None:
        return outer, letters
    holder, __, name = outer.rpartition(".")
    if _GENERIC.fullmatch(last) and (letters := _said(name)) is not None and not is_number(name):
        return holder, letters
    return None


def _said(name: str) -> str | None:
    for letter, pattern in _LETTERS.items():
        if pattern.fullmatch(name):
            return letter
    if name.lower() in _FUSED_WORDS:
        return "qkv"
    if (fused := _FUSED.fullmatch(name)) is None:
        return None
    letters = fused["letters"].lower()
    return letters if len(set(letters)) == len(letters) and set(letters) <= set("qkv") else None


def _is_a_head(found: Mapping[str, Module], outer: str, counted: list[str], group: Mapping[str, str]) -> bool:
    """Whether modules in a list are those of single heads: the list says so, or they are narrower than what they read."""
    if set(group) != set("qkv"):
        return False
    name = outer.rpartition(".")[2] if len(counted) == 1 else counted[0]
    rows, columns = found[group["q"]].shape
    return _HEADS.search(name) is not None or ((len(counted) == 1 or name == "h") and rows != columns)


def _numbered(found: Mapping[str, Module], complete: Mapping[str, object]) -> list[Attention]:
    """Lists of three or four square matrices: query, key, value and, of four, the output."""
    lists: dict[str, list[str]] = {}
    for path, module in found.items():
        outer, __, last = path.rpartition(".")
        if is_number(last) and module.is_matrix and outer and outer not in complete:
            lists.setdefault(outer, []).append(path)
    attentions = []
    for outer, paths in lists.items():
        parent, __, name = outer.rpartition(".")
        paths = sorted(paths, key=lambda path: int(path.rpartition(".")[2]))
        if [path.rpartition(".")[2] for path in paths] not in (list("012"), list("0123")):
            continue
        square = len({*found[paths[0]].shape}) == 1 and len({found[path].shape for path in paths}) == 1
        if square and _NUMBERED.fullmatch(name) and _ATTENTION.search(parent):
            projections = tuple(Projection(letter, (path,)) for letter, path in zip("qkv", paths, strict=False))
            attentions.append(Attention(parent, projections, numbered=True, out=paths[3] if len(paths) == 4 else ""))
    return attentions
