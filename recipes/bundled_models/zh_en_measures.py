"""How good the translator is, both ways."""

from pathlib import Path
from typing import Any

import sacrebleu

from recipes.translate import translate_all, translate_and_read_back
from recipes.translator.measure import MAX_NEW, TOKENIZE, measure
from recipes.translator.training_set import DIRECTIONS, read_lines
from tests.translation.everyday import held, sentences
from vizformer.checkpoints.own import Checkpoint

BEAM, READ_BACK = 4, 16  # hypotheses: of beam search alone, and of the one whose texts are read back
N_TEST = 800  # held-out pairs of Tatoeba
EVERY = 40  # which of them are samples: the first, and every one after so many


def evaluate_translator(checkpoint: Checkpoint, folder: Path) -> dict[str, Any]:
    """BLEU and chrF of greedy translations of the test pairs of a training set, each way, one reference each; BLEU with
    beam search, and with reading back; everyday sentences, who is meant and senses; and every so many of the translations.

    Source: Papineni et al. 2002; Popovic 2015; Post 2018 (sacrebleu).
    """
    results: dict[str, Any] = {"pairs": N_TEST}
    results |= {name: round(value, 2) for name, value in measure(checkpoint, folder, "test", N_TEST).items()}
    samples = {}
    for way in DIRECTIONS:
        lines = [line for line in read_lines(folder / "test.tsv") if line.direction == way][:N_TEST]
        outputs = {
            "beam": [checkpoint.beam(line.text, width=BEAM, max_new=MAX_NEW)[0][0] for line in lines],
            "read back": [translate_and_read_back(checkpoint, line.text, width=READ_BACK) for line in lines],
        }
        references = [[line.translation for line in lines]]
        for name, texts in outputs.items():
            found = sacrebleu.corpus_bleu(texts, references, tokenize=TOKENIZE[way])
            results[f"{way} {name} BLEU"] = round(found.score, 2)
        whole = [
            held(translate_and_read_back(checkpoint, one.text, width=READ_BACK), one.required) for one in sentences(way)
        ]
        results[f"{way} read back everyday"] = round(100 * sum(whole) / len(whole), 2)
        texts = [line.text for line in lines[::EVERY]]
        samples[way] = dict(zip(texts, translate_all(checkpoint, texts), strict=True))
    return {**results, "samples": samples}
