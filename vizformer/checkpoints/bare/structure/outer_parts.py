"""What lies beside the layers and is no table: norms, masks, segments, rotary buffers, rows of one-hot vectors."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from vizformer.checkpoints.bare.layouts.tables import POSITION, TOKEN
from vizformer.checkpoints.bare.structure.block_norms import is_norm
from vizformer.checkpoints.bare.structure.derived_tensors import Made
from vizformer.checkpoints.bare.structure.names import Module, is_number, natural, words
from vizformer.checkpoints.bare.structure.stacks import Stack
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import FLOATS, Stored, Weights
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

_HEAD = re.compile(r"head|classif|pred|proj|logit|output|out_?net|generator", re.IGNORECASE)
_FRONT = re.compile(r"(?:^|[._])(?:in|inp|inputs?|emb\w*)(?:[._]|$)", re.IGNORECASE)
_SEGMENT = re.compile(r"seg|token_?type|sentence_?(?:type|id)", re.IGNORECASE)
_MOST_SEGMENTS = 8
_BEFORE = {"emb", "embed", "embedding", "embeddings", "input", "in", "embd"}
_AFTER = {"final", "last", "f", "out", "output", "head", "top", "end", "fin"}
_LARGEST_MASK = 2**14  # positions
_INDICES = re.compile(r"(?:.*\.)?(?:position_?ids?|pos_?ids?|positions?|arange|indices)", re.IGNORECASE)
_FREQUENCIES = re.compile(r"(?:.*\.)?(?:inv_freq|freqs?_cis|freqs|theta|thetas)", re.IGNORECASE)
_NO_MASK = re.compile(r"(?:.*\.)?(?:masked_bias|IGNORE|mask_value|neg_inf|ignore)", re.IGNORECASE)


@dataclass
class Buffers:
    """Tensors that follow from other things."""

    unused: dict[str, Message] = field(default_factory=dict)  # their names, and what they are
    causal: str = ""  # the name of a mask that blocks what comes after a position
    theta: float | None = None  # the base of rotary positions, where their frequencies lie in the file
    pairs: str = ""  # the name of frequencies as complex numbers, which turn neighbours together
    turned: int = 0  # how many numbers of a head are turned


def buffers(weights: Weights) -> Buffers:
    """What follows from positions: masks, frequencies, numbers that count."""
    found = Buffers()
    for name, stored in weights.tensors.items():
        if _NO_MASK.fullmatch(name) and math.prod(stored.shape) == 1:
            found.unused[name] = N_("the number that stands for a blocked place")
        elif _is_causal(name, stored):
            found.unused[name] = N_("the causal mask: it follows from the positions")
            found.causal = found.causal or name
        elif _INDICES.fullmatch(name) and stored.dtype in ("int64", "int32") and _counts(stored):
            found.unused[name] = N_("the numbers of the positions")
        elif _FREQUENCIES.fullmatch(name) and (read := _frequencies(stored)) is not None:
            theta, pairs, n = read
            if found.theta is not None and abs(found.theta - theta) > 1e-3 * theta:
                continue
            found.unused[name] = N_(
                "the frequencies of rotary positions, with the base {theta}: they follow from it", theta=f"{theta:g}"
            )
            found.theta, found.pairs, found.turned = theta, name if pairs else found.pairs, n
    return found


def _is_causal(name: str, stored: Stored) -> bool:
    """Whether a buffer says which places are seen: the lower triangle, or that the upper one is not."""
    *above, rows, columns = stored.shape if len(stored.shape) > 1 else (0, 1)
    if rows != columns or not 1 < rows <= _LARGEST_MASK or any(n != 1 for n in above):
        return False
    if stored.dtype in FLOATS and not re.search(r"mask|tril|triu|causal|bias|future|tri", name, re.IGNORECASE):
        return False
    if stored.dtype.startswith("complex"):
        return False
    mask = stored.read().reshape(rows, columns)
    ones = torch.ones(rows, columns, dtype=torch.bool)
    if stored.dtype in FLOATS and bool((mask.float() < -100).any()):
        return bool(torch.equal(mask.float() > -100, ones.tril()) and (mask.float().tril() == 0).all())
    if not bool(((mask == 0) | (mask == 1)).all()):
        return False
    said = mask.bool()
    if torch.equal(said, ones.tril()):
        return True
    return bool(torch.equal(said, ones.triu(1)))


def _counts(stored: Stored) -> bool:
    n = math.prod(stored.shape)
    return 0 < n <= 2**20 and bool(torch.equal(stored.read().reshape(-1).long(), torch.arange(n)))


def _frequencies(stored: Stored) -> tuple[float, bool, int] | None:
    """(base, whether neighbours make a pair, how many numbers are turned)."""
    if len(stored.shape) == 1 and stored.dtype in FLOATS and 2 <= stored.shape[0] <= 512:
        rates = stored.read().double()
        n = len(rates)
    elif stored.dtype == "complex64" and len(stored.shape) == 2 and 2 <= stored.shape[1] <= 512 and stored.shape[0] > 1:
        angles = stored.read()[1].angle().double()
        rates, n = angles, stored.shape[1]
    else:
        return None
    if not bool((rates > 0).all()):
        return None
    theta = float(rates[-1]) ** (-n / (n - 1))
    expected = torch.exp(-math.log(theta) * torch.arange(n).double() / n) if 1 < theta < 1e9 else rates * 0
    if not torch.allclose(rates, expected, rtol=1e-3):
        return None
    rounded = float(round(theta, -1)) if abs(theta - round(theta, -1)) < 1e-3 * theta else theta
    return rounded, stored.dtype == "complex64", 2 * n


@dataclass
class Norms:
    """Norms beside the layers, by stack ("" for all): those that names place, and those they do not."""

    first: dict[int, Module] = field(default_factory=dict)
    last: dict[int, Module] = field(default_factory=dict)
    open: dict[int, Module] = field(default_factory=dict)

    def modules(self) -> list[Module]:
        return [*self.first.values(), *self.last.values(), *self.open.values()]


def norms(found: Mapping[str, Module], stacks: Sequence[Stack], used: set[str], width: int, file: str) -> Norms:
    """The norms before the first layer and after the last one."""
    result = Norms()
    beside = {path: module for path, module in found.items() if path not in used}
    for path, module in beside.items():
        if not is_norm(module, width) or (module.raw and not module.own) or _of_a_head(module, beside, width):
            continue
        number = _stack_of(path, stacks)
        said = words(path.removeprefix(".".join(stacks[number].prefix[:-1]) if number >= 0 else ""))
        place = result.last if said & _AFTER or _before_the_head(module, beside) else result.open
        place = result.first if said & _BEFORE and not said & {"out", "output", "final", "last"} else place
        if number in place:
            raise CheckpointError(
                "{file} has several norms beside its layers, {first} and {second}, and nothing says which comes where.",
                file=file,
                first=shown(place[number].path),
                second=shown(path),
            )
        place[number] = module
    if len(stacks) == 1:
        for place in (result.first, result.last, result.open):
            if len(place) > 1:
                raise CheckpointError(one_sided(file, [module.path for module in place.values()]))
            for number in list(place):
                place[0] = place.pop(number)
        if result.open and result.last and not result.first:
            result.first, result.open = result.open, {}
        elif result.open and result.first and not result.last:
            result.last, result.open = result.open, {}
        return result
    for place in (result.first, result.last, result.open):
        if place and sorted(place) != [0, 1] and (place is result.first or -1 in place):
            raise CheckpointError(one_sided(file, [module.path for module in place.values()]))
    return result


def one_sided(file: str, names: Sequence[str]) -> Message:
    return N_(
        "{file} has norms beside its layers, {names}: supported is one after the last layer of a stack, and one after the "
        "embeddings of every stack.",
        file=file,
        names=", ".join(map(shown, names[:6])),
    )


def _stack_of(path: str, stacks: Sequence[Stack]) -> int:
    """The number of the stack beside whose layers a module lies; -1 where it is that of none or of all."""
    places = [".".join(stack.prefix[:-1] if stack.counted else stack.prefix) for stack in stacks]
    here = [n for n, place in enumerate(places) if place and path.startswith(f"{place}.")]
    if len(stacks) == 1:
        return 0 if here else -1
    if len(here) == 2:  # one within the other
        here = [max(here, key=lambda n: len(places[n]))] if places[0] != places[1] else []
    return here[0] if here else -1


def _of_a_head(module: Module, beside: Mapping[str, Module], width: int) -> bool:
    """Whether a norm is one of the layers of a head (which predicts no tokens)."""
    siblings = [m for m in beside.values() if m.parent == module.parent and m.path != module.path and m.is_matrix]
    if not module.parent or not siblings:
        return False
    if is_number(module.last):
        before = [m for m in siblings if is_number(m.last) and natural(m.path) < natural(module.path)]
        if before:
            return True
        tables = [m.shape for m in beside.values() if m.is_matrix and m not in siblings and TOKEN.search(m.path)]
        return not any(m.shape in tables for m in siblings)
    return _HEAD.search(module.parent) is not None


def _before_the_head(module: Module, beside: Mapping[str, Module]) -> bool:
    """Whether the next module of a sequence is a head for tokens."""
    if not is_number(module.last):
        return False
    after = [m for m in beside.values() if m.parent == module.parent and m.is_matrix and is_number(m.last)]
    return bool(after) and all(natural(m.path) > natural(module.path) for m in after)


def segments(weights: Weights, beside: Sequence[str], width: int) -> str:
    """The table of segments, if there is one."""
    named = [name for name in beside if _SEGMENT.search(name)]
    shapes = {name: weights.tensors[name].shape for name in named}
    fitting = [name for name, shape in shapes.items() if len(shape) == 2 and shape[1] == width]
    fitting = [name for name in fitting if 1 < shapes[name][0] <= _MOST_SEGMENTS]
    return fitting[0] if len(fitting) == 1 else ""


ONE_HOT, WIDER = ".one_hot_embedding", ".wider_embedding"


def front(found: Mapping[str, Module], used: set[str], width: int) -> tuple[str, Made] | None:
    """A linear layer that makes the rows of the first layer: what it makes of every token, and a name for that table.

    It reads the rows of a narrower table of tokens, or tokens as vectors with one 1.  The latter is taken for granted
    where something after the layers tells as many classes apart as it reads numbers, so that both may be tokens.
    """
    beside = [module for path, module in found.items() if path not in used and module.is_matrix and not module.raw]
    makes = [m for m in beside if m.shape[0] == width != m.shape[1] and m.bias_shape in ((), (width,))]
    makes = [m for m in makes if _FRONT.search(m.path) or not _HEAD.search(m.path)]
    if len(makes) != 1:
        return None
    (layer,) = makes
    n, others = layer.shape[1], [module for module in beside if module is not layer]
    tables = [m for m in others if TOKEN.search(m.path) and not POSITION.search(m.path)]
    if not tables and n > 1 and any(module.shape == (n, width) for module in others):
        return f"{layer.path}{ONE_HOT}", Made(layer.names, (n, width), lambda read: _made_of(read[0].T, *read[1:]))
    if len(tables) != 1 or tables[0].bias is not None or any(n in m.shape for m in others if m is not tables[0]):
        return None
    (table,) = tables
    if table.shape[1] != n:
        return None
    names = (*table.names, *layer.names)
    return f"{layer.path}{WIDER}", Made(
        names, (table.shape[0], width), lambda read: _made_of(read[0] @ read[1].T, *read[2:])
    )


def _made_of(rows: Tensor, bias: Tensor | None = None) -> Tensor:
    return (rows if bias is None else rows + bias).contiguous()
