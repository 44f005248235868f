"""Cached computations of the lesson Tokens and embeddings."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float
    from torch import Tensor

    from vizformer.analysis.contexts import Contexts
    from vizformer.analysis.embeddings import Lookup, Neighbours, Norms, Projection
    from vizformer.model import Trace
    from vizformer.text.merging import Applied, Learned
    from vizformer.text.schemes import Piece, Scheme

SCHEMES: "tuple[Scheme, ...]" = ("word", "character", "bpe", "wordpiece", "unigram", "byte")
MERGES = 40  # steps of learning that are shown
NEAREST = 8  # neighbours of the chosen token
NEAR = 3  # neighbours of every other token, on the map
TRIED = 12  # tokens that a model generates with the factor switched

LOOKUP = """one_hot = F.one_hot(torch.tensor(id), vocab_size).float()
product = one_hot @ E  # vocab_size * d_model products
row = E[id]            # what nn.Embedding does
(product - row).abs().max()"""
LEARN = """counts = Counter(pair for word, times in words.items() for pair in pairwise(word) for _ in range(times))
pair = max(counts, key=counts.get)"""
APPLY = """pairs = [pair for word in words for pair in pairwise(word) if pair in ranks]
pair = min(pairs, key=ranks.get)"""
COSINE = "cosines = F.normalize(E, dim=-1) @ F.normalize(E[id], dim=-1)  # [vocab_size]"
CONTEXT = "F.cosine_similarity(x_A[l][i], x_B[l][j], dim=-1)"


@dataclass(frozen=True)
class Occasion:
    """Sentences that use one token in two senses: the first and the second differ, the third is as the first."""

    token: str
    first: str
    second: str
    third: str


OCCASIONS = (
    Occasion("花", "我在花园里。", "我花了十元。", "他们在花园里玩。"),
    Occasion("苹", "苹果是一种好吃的水果。", "苹果是一个伟大的品牌。", "苹果是我最喜欢的水果。"),
    Occasion("打", "我打电话给他。", "他打了我。", "她打电话给我。"),
    Occasion(
        "bank",
        "They sat on the bank of the river.",
        "She went to the bank to get some money.",
        "We walked along the bank of the stream.",
    ),
    Occasion("can", "I can swim.", "He opened a can of beans.", "She can sing."),
)
OTHERS = (  # for a sentence of the reader's: the one that shares most with it
    "那只猫在睡觉。",
    "他们在学校里学中文。",
    "我不知道他是谁。",
    "今天的天气很好，我们去公园吧。",
    "她昨天买了一本书。",
    "The old man sat under the tree.",
    "I do not know what you mean.",
    "She opened the door and saw a cat.",
    "We are going to the city by train.",
    "He is not a good friend of mine.",
)


def input_code(positions: str, scaled: bool) -> str:
    """The line that computes what is added up before the first layer."""
    added = " + P[:n]" if positions in ("sinusoidal", "learned") else ""
    return f"x_0 = E[ids]{' * d_model**0.5' if scaled else ''}{added}"


def cuts(scheme: "Scheme", text: str) -> "tuple[Piece, ...]":
    """The text under one of the six schemes."""
    return _cuts(text)[scheme]


@cached
def _cuts(text: str) -> "dict[Scheme, tuple[Piece, ...]]":
    from vizformer.text.schemes import cut

    return {scheme: cut(scheme, text) for scheme in SCHEMES}


@cached
def own_cuts(model: ModelRef, text: str) -> "tuple[Piece, ...]":
    """The text under the model's tokenizer, without the special tokens around it."""
    from vizformer.text.schemes import pieces

    tokenizer = model_cache.checkpoint(model).reader("encoder")
    return pieces(text, tokenizer.encode(text, special=False), tokenizer)


def takes_ids(model: ModelRef) -> bool:
    """Whether the model came without a tokenizer, so that a text is the ids themselves."""
    from vizformer.checkpoints.tokenizers.token_ids import NumberReader

    return isinstance(model_cache.checkpoint(model).reader("encoder"), NumberReader)


def vocabulary(scheme: "Scheme") -> int:
    """Entries of a scheme's vocabulary."""
    from vizformer.text.schemes import scheme_tokenizer

    return scheme_tokenizer(scheme).vocab_size


@cached
def applied(text: str) -> "tuple[tuple[tuple[str, ...], ...], tuple[Applied, ...]]":
    """The words of the text as characters, and the merges of the bundled table one by one."""
    from vizformer.text import merging

    words = merging.words_of(text)
    return words, merging.apply(words, *merging.bundled_table())


@cached
def learned(text: str) -> "tuple[tuple[tuple[tuple[str, ...], int], ...], tuple[Learned, ...]]":
    """Words with how often they occur, and what BPE learns from them; an empty text stands for the paper's words."""
    from vizformer.text import merging

    words = Counter(merging.words_of(text)) if text else merging.PAPER
    return tuple(words.items()), merging.learn(words, MERGES)


@cached
def next_counts(text: str, step: int) -> "tuple[tuple[tuple[str, str], int], ...]":
    """The pairs of neighbours before merge `step`, most frequent first."""
    from vizformer.text.merging import pair_counts

    words, steps = learned(text)
    if step < len(steps):
        return steps[step].counts
    return tuple(pair_counts(steps[-1].words if steps else words).most_common())


@cached
def lookup(model: ModelRef, id: int) -> "Lookup":
    from vizformer.analysis.embeddings import lookup

    return lookup(model_cache.checkpoint(model), id)


@cached
def table(model: ModelRef, rows: tuple[int, ...], columns: tuple[int, ...]) -> "Float[np.ndarray, 'rows columns']":
    """Some numbers of the embedding table."""
    import numpy as np

    weight = model_cache.checkpoint(model).model.token_table().weight
    found: np.ndarray = weight[list(rows)][:, list(columns)].detach().cpu().double().numpy()
    return found


@cached
def _directions(model: ModelRef, centred: bool) -> "tuple[Float[np.ndarray, 'vocab_size d_model'], float]":
    from vizformer.analysis.embeddings import average_cosine, directions

    unit = directions(model_cache.checkpoint(model), centred=centred)
    return unit, average_cosine(unit)


@cached
def neighbours(model: ModelRef, id: int, centred: bool) -> "Neighbours":
    from vizformer.analysis.embeddings import neighbours

    return neighbours(_directions(model, centred)[0], id, NEAREST)


def average_cosine(model: ModelRef, centred: bool) -> float:
    """The mean cosine of two rows of the table."""
    return _directions(model, centred)[1]


@cached
def near(model: ModelRef, ids: tuple[int, ...], chosen: int, centred: bool) -> "tuple[tuple[int, ...], Projection]":
    """The distinct tokens of a text, the neighbours of `chosen`, some of every other's; and all of them on a plane."""
    from vizformer.analysis.embeddings import project

    own = list(dict.fromkeys(ids))
    close = neighbours(model, chosen, centred).ids
    rest = [other for id in own if id != chosen for other in neighbours(model, id, centred).ids[:NEAR]]
    shown = tuple(dict.fromkeys([*own, *close, *rest]))
    return shown, project(_directions(model, centred)[0][list(shown)].astype(float))


def names(model: ModelRef, ids: tuple[int, ...], beside: tuple[int, ...] = ()) -> list[str]:
    """What the tokens read; with its id where another one (also of those `beside`) reads the same: "cat", " cat"."""
    found = model_cache.checkpoint(model).reader("encoder").tokens([*ids, *(id for id in beside if id not in ids)])
    alike = Counter(token.text for token in found)
    return [f"{token.text} #{token.id}" if alike[token.text] > 1 else token.text for token in found[: len(ids)]]


def seconds(subject: Subject) -> tuple[str, str]:
    """A second and a third sentence to hold against the first: of the examples, or the one that shares most with it."""
    for occasion in occasions(subject.model):
        if occasion.first == subject.text.strip():
            return occasion.second, occasion.third
    return _fitting(subject.model, subject.text), ""


@cached
def occasions(model: ModelRef) -> tuple[Occasion, ...]:
    """The examples that the model can read: not where it takes few tokens, or came without a tokenizer."""
    return tuple(o for o in OCCASIONS if all(model_cache.reads(model, text) for text in (o.first, o.second, o.third)))


@cached
def _fitting(model: ModelRef, text: str) -> str:
    """The sentence that shares most words with the text; where none can be read, the text's own words turned round."""
    tokenizer = model_cache.checkpoint(model).reader("encoder")
    others = [other for other in OTHERS if other != text.strip() and model_cache.reads(model, other)]
    if not others:
        turned = " ".join(reversed(text.split()))
        return turned if turned != text.strip() and model_cache.reads(model, turned) else ""

    def words(sentence: str) -> set[int]:
        return {token.id for token in tokenizer.encode(sentence, special=False) if token.text[:1].isalnum()}

    own = words(text)
    return max(others, key=lambda other: len(own & words(other)))


def _reading(model: ModelRef, text: str) -> "Trace":
    # Only what the encoder makes of it is compared, and that knows nothing of the target: any short one will do.
    target = text.split()[0] if model_cache.reads_target(model) else ""
    return Subject(model, text, target).trace


@cached
def shared(model: ModelRef, first: str, second: str) -> tuple[tuple[int, int], ...]:
    """Places of the same token in two texts."""
    from vizformer.analysis.contexts import shared

    return shared(_reading(model, first), _reading(model, second))


@cached
def contexts(model: ModelRef, first: str, second: str, i: int, j: int) -> "Contexts":
    from vizformer.analysis.contexts import contexts

    return contexts(model_cache.checkpoint(model), _reading(model, first), _reading(model, second), i, j)


@cached
def norms(model: ModelRef, ids: tuple[int, ...]) -> "Norms":
    import numpy as np

    from vizformer.analysis.embeddings import norms

    return norms(model_cache.checkpoint(model), np.array(ids))


@cached
def written(model: ModelRef, text: str, scaled: bool) -> str:
    """What the model makes of the text with or without the factor sqrt(d_model), the first tokens of it."""
    from vizformer.analysis.embeddings import with_scale

    return with_scale(model_cache.checkpoint(model), scaled).generate(text, max_new=TRIED).text


def embedding_table(model: ModelRef) -> "Tensor":
    """The table of embeddings that the text is read with [vocab_size, d_model]."""
    return model_cache.checkpoint(model).model.token_table("encoder").weight.detach()
