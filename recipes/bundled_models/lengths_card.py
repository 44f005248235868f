"""README.md of the tiny models of the lesson Positions: what they are, what was measured, how to remake them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recipes.corpus import TEST_BOOK, VALID_BOOK


def write_card(folder: Path, notes: Mapping[str, Any], *, longest: int, stride: int, every: int) -> None:
    """Writes README.md from what `vizformer.training.lengths.measured` returns.

    Args:
        folder: where the card goes.
        notes: what was measured.
        longest: bytes that a held-out window has, and the models were read with.
        stride: from one window to the next.
        every: how many Chinese sentences there are to one that is held out.
    """
    trained = notes["trained"]
    near, far = slice(trained // 2, trained), slice(longest - trained // 2, longest)
    behind = slice(3 * trained // 2, 2 * trained)
    recipe = notes["recipe"]
    lines = []
    for scheme, curve in notes["loss"]["book"].items():
        chinese = notes["loss"]["chinese"][scheme]
        cells = [_mean(curve, near), _mean(curve, behind), _mean(curve, far), _mean(chinese, near), _mean(chinese, far)]
        lines.append(f"| {scheme} | {' | '.join(cells)} | {notes['seconds'][scheme] / 60:.1f} |")
    updates = recipe["updates"] * recipe["loop"]["epochs"]
    model = recipe["model"]
    sentences = f"every {every}th distinct Chinese sentence"
    batch = f"{recipe['books']} windows from the books and {recipe['chinese']} from the sentences"
    kept = f"an exponential moving average of the weights ({recipe['loop']['average_decay']}) is what is kept"
    windows = f"{notes['windows']['book']:,} windows of the book, {notes['windows']['chinese']:,} of the sentences"
    on = next(iter(notes["machine"].values()), "")
    spans = [f"book, {_span(near)}", f"book, {_span(behind)}", f"book, {_span(far)}"]
    heads = " | ".join([*spans, f"Chinese, {_span(near)}", f"Chinese, {_span(far)}"])
    card = f"""# Past the trained length

Six decoder-only language models over bytes of UTF-8 that differ only in how they are told positions: sinusoidal
(Vaswani et al. 2017), learned, RoPE (Su et al. 2021), ALiBi (Press et al. 2021), T5's buckets of relative positions
(Raffel et al. 2019), none. d_model {model["d_model"]}, {model["n_heads"]} heads, {model["n_decoder_layers"]} layers,
LayerNorm before each sublayer, GELU, tied embeddings.

## Data and licence

- Books: 26 children's books in English in the public domain (Project Gutenberg).
- Sentences: Tatoeba, the Mandarin - English export of manythings.org/anki, CC BY 2.0 FR (the Chinese side).

The weights are published under the licence of the sentences, CC BY 2.0 FR, with attribution to tatoeba.org and its
contributors. Held out: the book "{TEST_BOOK}" (and "{VALID_BOOK}"), and
{sentences}.

## Training

All six alike: {updates:,} updates on batches of {batch}, each of
{notes["trained"]} bytes, the same windows in the same order, seed {recipe["loop"]["seed"]}; Adam (0.9, 0.98), warm-up
over {recipe["loop"]["warmup"]} updates, then inverse-square-root decay; {kept}.
{on[:1].upper() + on[1:]}, shared with other work.

    python -m recipes.bundled_models.train lengths --data DATA

## Measured

Mean loss in nats per byte by position in windows of {longest} bytes of held-out text ({windows},
{stride} bytes apart: position {stride} of one is position 0 of the next, so that all columns of a text average over
the same bytes, but for the edges). Training saw positions 0 to {notes["trained"] - 1}; the table of "learned" ends
there. The curves are in the folders' measured.json.

| positions | {heads} | minutes of training |
|---|---|---|---|---|---|---|
{chr(10).join(lines)}

## Limits

One seed and one small recipe: enough to see what happens past the trained length, not to rank the schemes.
"""
    (folder / "README.md").write_text(card, encoding="utf-8")


def _mean(curve: Sequence[float], where: slice) -> str:
    part = curve[where]
    return f"{sum(part) / len(part):.3f}" if len(curve) >= where.stop else "none"


def _span(part: slice) -> str:
    return f"{part.start}-{part.stop - 1}"
