"""How good the translator is, both ways."""

from pathlib import Path
from typing import Any

import sacrebleu

from recipes.translate import translate_all
from recipes.translator.measure import MAX_NEW, TOKENIZE, measure
from recipes.translator.training_set import DIRECTIONS, read_lines
from vizformer.checkpoints.own.checkpoint import Checkpoint

BEAM = 4
N_TEST = 800  # held-out pairs of Tatoeba
EVERY = 40  # which of them are samples: the first, and every one after so many


def evaluate_translator(checkpoint: Checkpoint, folder: Path) -> dict[str, Any]:
    """BLEU and chrF of greedy translations of the test pairs of a training set, each way, one reference each; BLEU with
    beam search; everyday sentences, who is meant and senses; and every so many of the translations.

    Source: Papineni et al. 2002; Popovic 2015; Post 2018 (sacrebleu).
    """
    results: dict[str, Any] = {"pairs": N_TEST}
    results |= {name: round(value, 2) for name, value in measure(checkpoint, folder, "test", N_TEST).items()}
    samples = {}
    for way in DIRECTIONS:
        lines = [line for line in read_lines(folder / "test.tsv") if line.direction == way][:N_TEST]
        beamed = [checkpoint.beam(line.text, width=BEAM, max_new=MAX_NEW)[0][0] for line in lines]
        references = [[line.translation for line in lines]]
        found = sacrebleu.corpus_bleu(beamed, references, tokenize=TOKENIZE[way])
        results[f"{way} beam BLEU"] = round(found.score, 2)
        texts = [line.text for line in lines[::EVERY]]
        samples[way] = dict(zip(texts, translate_all(checkpoint, texts), strict=True))
    return {**results, "samples": samples}
