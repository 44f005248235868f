"""More pairs from English alone: a reverse model translates English sentences back, and the pairs are learned too.

The target side stays what people wrote; only the source side is made up.
Source: Sennrich, Haddow & Birch 2016, "Improving Neural Machine Translation Models with Monolingual Data".
"""

import random
from collections.abc import Iterable
from pathlib import Path

from vizformer.checkpoints.checkpoint import Checkpoint
from vizformer.errors import VizformerError
from vizformer.messages import N_
from vizformer.training.pairs import Pair, Split, sentence_key
from vizformer.training.translate import translate_all

MAX_WORDS = 14


def read_sentences(path: Path) -> list[str]:
    """The distinct first columns of a tab-separated file (plain lines work too)."""
    if not path.is_file():
        raise VizformerError(N_("There is no file {path}. Give the path of a text file.", path=str(path)))
    lines = path.read_text(encoding="utf-8").splitlines()
    return list(dict.fromkeys(line.split("\t")[0].strip() for line in lines if line.strip()))


def usable_sentences(sentences: Iterable[str], split: Split, *, count: int, seed: int) -> list[str]:
    """A sample of short sentences, none of which occurs in a held-out pair or is known to training already."""
    taken = {sentence_key(pair.target) for part in (split.train, split.valid, split.test) for pair in part}
    usable = [s for s in sentences if sentence_key(s) not in taken and len(s.split()) <= MAX_WORDS]
    random.Random(seed).shuffle(usable)
    return usable[:count]


def back_translate(reverse: Checkpoint, sentences: list[str], cache: Path) -> list[Pair]:
    """Pairs of made-up sources and given targets; what `cache` holds already is not translated again."""
    done: list[Pair] = []
    if cache.is_file():
        text = cache.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]  # a kill may have cut the last line
        cache.write_text(whole, encoding="utf-8")
        done = [Pair(source, target) for target, source in (line.split("\t") for line in whole.splitlines())]
    known = {pair.target for pair in done}
    missing = [sentence for sentence in sentences if sentence not in known]
    cache.parent.mkdir(parents=True, exist_ok=True)
    with cache.open("a", encoding="utf-8") as file:
        for start in range(0, len(missing), 1024):
            part = missing[start : start + 1024]
            for target, source in zip(part, translate_all(reverse, part, max_new=40), strict=True):
                if source := " ".join(source.split()):
                    done.append(Pair(source, target))
                    file.write(f"{target}\t{source}\n")
            file.flush()
    wanted = set(sentences)
    return [pair for pair in done if pair.target in wanted]
