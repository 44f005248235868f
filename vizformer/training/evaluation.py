"""How good a translator is, and the card that says so."""

import json
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from vizformer.checkpoints.own.checkpoint import Checkpoint
from vizformer.errors import VizformerError
from vizformer.training.pairs import Pair
from vizformer.training.translate import translate_all

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
            "Evaluation needs the package sacrebleu; install it with: pip install 'vizformer[train]'"
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


def write_card(folder: Path, checkpoint: Checkpoint, training: dict[str, Any], results: dict[str, Any]) -> None:
    """Writes README.md of a model: what it is, what it learned from, how well it does, how to remake it."""
    config = checkpoint.model.config
    parameters = sum(p.numel() for p in checkpoint.model.parameters())
    size = (folder / "model.safetensors").stat().st_size
    samples = "\n".join(f"| {source} | {output} |" for source, output in results["samples"].items())
    sources = "\n".join(f"- {line}" for line in training["recipe"]["sources"])
    alignment = ""
    if found := results.get("alignment"):
        alignment = (
            f"Alignment: on {found['pairs']} held-out pairs aligned by hand (`alignment.tsv`), the most attended source"
            f" token of\ncross-attention layer {found['layer']} (heads averaged) belongs to the right word for "
            f"**{found['found']:.0%}** of the {found['words']} content words.\n\n"
        )
    card = f"""# {folder.name}

A Chinese → English Transformer in the style of "Attention Is All You Need" (encoder-decoder, {config.norm_order}-norm,
{config.positions} positions, ReLU, one table of embeddings scaled by √d_model), small enough to look into.

| | |
|---|---|
| parameters | {parameters:,} |
| d_model, heads, d_ff | {config.d_model}, {config.n_heads}, {config.d_ff} |
| layers | {config.n_encoder_layers} encoder + {config.n_decoder_layers} decoder |
| vocabulary | {config.vocab_size:,} byte-level BPE tokens, shared; Chinese characters stand alone |
| longest input | {config.max_positions} tokens (training saw at most 60) |
| file | {size / 1e6:.1f} MB, float16 safetensors |

## Data and licence

{sources}

Held out: groups of pairs that share no source and no target sentence with training (compared without case, width,
punctuation and spaces). Tatoeba has many sentences that differ in one word, so held-out pairs often resemble known
ones. The weights are published under the licence of the data, CC BY 2.0 FR, with attribution to tatoeba.org and its
contributors.

## Training

{training["pairs"]:,} pairs, {training["epochs"]} epochs, {training["steps"]:,} updates with batches of
about {training["recipe"]["tokens_per_batch"]:,} tokens, {training["minutes"]:.0f} minutes {training["machine"]};
cross-entropy on the validation pairs {training["held_out"]["loss"]:.3f} nats per token.

Adam (0.9, 0.98), warm-up then inverse-square-root decay, label smoothing 0.1, dropout {config.dropout},
and an exponential moving average of the weights, which is what is kept.

    vizformer train {folder.name} --data {training["data"]}

{training.get("remark", "")}

## Evaluation

Greedy decoding on {results["pairs"]} held-out pairs, one reference each:
**BLEU {results["bleu"]}** (sacrebleu, 13a), **chrF {results["chrf"]}**, length ratio {results["length_ratio"]}.
Beam search with {BEAM} hypotheses (length penalty 0.6): BLEU {results["beam_bleu"]}.

    vizformer evaluate {folder.name} --data {training["data"]}

{alignment}| source | translation |
|---|---|
{samples}

## Limits

It knows short everyday sentences like those of its data; long or specialised text, names and numbers come out wrong.
It is made to be looked into, not to be relied on.
"""
    (folder / "README.md").write_text(card, encoding="utf-8")


def machine() -> str:
    """What a training ran on, for the card."""
    if torch.cuda.is_available():
        return f"on one {torch.cuda.get_device_name()}"
    return f"on an {platform.machine()} processor (threads: {torch.get_num_threads()}), bfloat16 autocast"


def save_notes(folder: Path, name: str, notes: dict[str, Any]) -> None:
    (folder / name).write_text(json.dumps(notes, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
