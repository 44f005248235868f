"""Writes Chinese-English sentence pairs of everyday life: `python -m recipes.translator.everyday --pairs 100000 OUT.tsv`."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import click

from recipes.translator.coreference import Coreference
from recipes.translator.lexicon import FOLDER, lexicon
from recipes.translator.patterns import kinds
from recipes.translator.phrases import Speaker, with_capital
from recipes.translator.senses import Senses
from recipes.translator.sentences import KINDS

SHORT = {"am": "'m", "is": "'s", "are": "'re", "will": "'ll"}
SHORTENED = re.compile(r"^(I|He|She|It|We|You|They) (am|is|are|will) (?!not\b)")
COREFERENCE, SENSES = 0.075, 0.05
"""Which share of the pairs they are."""


@dataclass(frozen=True)
class Pair:
    """`kind` is the kind of sentence; of coreference also the pronoun and whether the first or second candidate is meant."""

    zh: str
    en: str
    kind: str = field(compare=False)


def core(zh: str) -> str:
    """The sentence without the words that one may leave out: 我的妹妹正在河边看书 and 我妹妹在河边看书 are one."""
    return re.sub("[的正，。？！]", "", zh)


def not_written() -> set[str]:
    """The course's own example sentences by their core: nothing may be trained on them."""
    return {core(line) for line in (FOLDER / "not_written.txt").read_text(encoding="utf-8").splitlines()}


def shortened(en: str) -> str:
    """I am as I'm, is not as isn't, as most people write."""
    en = SHORTENED.sub(lambda match: f"{match[1]}{SHORT[match[2]]} ", en)
    return re.sub(r"\b(is|are|was|were) not\b", r"\1n't", en)


def drawn(seed: int, held_out: bool) -> Iterator[Pair]:
    rng = random.Random(seed)
    speaker = Speaker(lexicon(), rng)
    coreference, senses = Coreference(speaker, held_out), Senses(speaker, held_out)
    if not held_out:
        yield from (Pair(phrase.zh, phrase.en, "phrases") for phrase in speaker.lexicon.phrases)
    all_kinds = {**KINDS, **kinds()}
    names, weights = list(all_kinds), [weight for _, weight in all_kinds.values()]
    while True:
        draw = rng.random() * (COREFERENCE + SENSES if held_out else 1)
        if draw < COREFERENCE / 2:  # two at a time
            yield from (Pair(*found) for found in coreference.pairs())
        elif COREFERENCE <= draw < COREFERENCE + SENSES:
            found = senses.pair()
            if found:
                yield Pair(*found)
        elif not held_out:
            name = rng.choices(names, weights)[0]
            zh, en = all_kinds[name][0](speaker)
            yield Pair(zh, shortened(with_capital(en)) if speaker.chance(0.25) else en, name)


def everyday(seed: int, *, held_out: bool = False) -> Iterator[Pair]:
    """Sentences without end, none twice, the set phrases first; the same ones for the same seed.

    Args:
        held_out: only coreference and senses, of nouns that neither has in training (they occur in other sentences).
    """
    seen: set[Pair] = set()
    excluded = not_written()
    for drawn_pair in drawn(seed, held_out):
        pair = replace(drawn_pair, en=with_capital(drawn_pair.en))
        if pair not in seen and core(pair.zh) not in excluded:
            seen.add(pair)
            yield pair


@click.command(help="Write N distinct pairs to OUT: Chinese, English and the kind of sentence, separated by tabs.")
@click.option("--pairs", "n_pairs", default=100_000, show_default=True, type=click.IntRange(1, 1_000_000))
@click.option("--seed", default=0, show_default=True)
@click.option(
    "--held-out", is_flag=True, help="Only coreference and senses of held-out nouns: for tests, not for training."
)
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
def main(n_pairs: int, seed: int, held_out: bool, out: Path) -> None:
    lines = (f"{pair.zh}\t{pair.en}\t{pair.kind}\n" for pair in islice(everyday(seed, held_out=held_out), n_pairs))
    with out.open("w", encoding="utf-8") as file:
        file.writelines(lines)


if __name__ == "__main__":
    main()
