"""How good a translator is."""

import time
from collections.abc import Sequence
from typing import Any

from recipes.pairs import Pair
from recipes.translate import translate_all
from vizformer.checkpoints.own.checkpoint import Checkpoint
from vizformer.errors import VizformerError

BEAM = 4
SAMPLES = (
    "我有一只猫。",
    "你叫什么名字？",
    "今天天气很好。",
    "他昨天去了北京。",
    "我不知道该怎么办。",
    "这本书是我的。",
)


def evaluate_translator(checkpoint: Checkpoint, test: Sequence[Pair]) -> dict[str, Any]:
    """Corpus BLEU (13a tokenization) and chrF of greedy translations, one reference per pair.

    Raises:
        VizformerError: sacrebleu is not installed.

    Source: Papineni et al. 2002; Popovic 2015; Post 2018 (sacrebleu).
    """
    try:
        import sacrebleu
    except ImportError as error:
        raise VizformerError(
            "Evaluation needs the package sacrebleu; install it with: pip install sacrebleu"
        ) from error
    started = time.perf_counter()
    outputs = translate_all(checkpoint, [pair.source for pair in test])
    references = [[pair.target for pair in test]]
    bleu = sacrebleu.corpus_bleu(outputs, references, tokenize="13a")
    chrf = sacrebleu.corpus_chrf(outputs, references)
    beamed = [checkpoint.beam(pair.source, width=BEAM, max_new=80)[0][0] for pair in test]
    beam = sacrebleu.corpus_bleu(beamed, references, tokenize="13a")
    return {
        "pairs": len(test),
        "bleu": round(bleu.score, 2),
        "chrf": round(chrf.score, 2),
        "beam_bleu": round(beam.score, 2),
        "length_ratio": round(bleu.sys_len / bleu.ref_len, 3),
        "seconds": round(time.perf_counter() - started, 1),
        "samples": dict(zip(SAMPLES, translate_all(checkpoint, SAMPLES), strict=True)),
    }
