"""What patches, ablations and the head report cost, in processor seconds of one thread.

    python -m tests.benchmarks.causes                       # GPT-2 small's shape and vocabulary, random weights
    python -m tests.benchmarks.causes --only heads --only hooks
    python -m tests.benchmarks.causes --layers 2 --d-model 96 --vocab-size 500      # a quick look
    python -m tests.benchmarks.causes --device cuda

Processor seconds are those that this process computed, so that work beside it disturbs little; on another device they
are those that passed.  "hooks" is the same as
"heads" the way one writes it in a notebook: `GPT2LMHeadModel` of transformers, a hook in every layer, 16 patches in a batch.
The command ends with exit code 1 where a measurement is above its bar.
"""

import sys
import time
from collections.abc import Callable

import click
import torch

from tests import tiny
from vizformer.analysis import patch_runs
from vizformer.analysis.causes.ablation import parts_of, sweep
from vizformer.analysis.causes.prompt_pairs import PromptPair
from vizformer.analysis.corpus_heads import Corpus, head_report
from vizformer.checkpoints import Checkpoint
from vizformer.config import ModelConfig
from vizformer.model import Transformer

BARS = {"heads": 12, "ablations": 10, "stream": 60, "pairs": 240, "report": 60, "hooks": None}
"""Processor seconds."""
ABOUT = {
    "heads": "all heads patched, 63 tokens",
    "ablations": "all heads taken out, 63 tokens",
    "stream": "all cells of the stream patched, 63 tokens",
    "pairs": "50 pairs of 20 tokens, all heads patched",
    "report": "head report, 200 texts of 126 tokens",
    "hooks": "all heads patched by hooks on transformers",
}


def pair_of(checkpoint: Checkpoint, n: int, seed: int = 0) -> PromptPair:
    """Two rows of random ids that differ at one place."""
    clean = tiny.ids(n, seed=seed, vocab_size=tiny.tokenizer().vocab_size)[0].tolist()
    corrupted = list(clean)
    corrupted[n // 3] = 3 if clean[n // 3] != 3 else 4
    return PromptPair(checkpoint.trace(ids=clean), checkpoint.trace(ids=corrupted), n - 1, 11, 13)


def by_hooks(checkpoint: Checkpoint, pair: PromptPair, at_once: int = 16) -> None:
    """Every head of the clean run in the corrupted one, in a GPT-2 of transformers of the same shape."""
    from transformers import GPT2Config, GPT2LMHeadModel

    own = checkpoint.model.config
    shape = dict(n_embd=own.d_model, n_layer=own.n_decoder_layers, n_head=own.n_heads, n_positions=own.max_positions)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=own.vocab_size, **shape)).eval()
    clean, corrupted = (
        torch.tensor([[token.id for token in run.tokens["decoder"]]]) for run in (pair.clean, pair.corrupted)
    )
    outputs = [block.attn.c_proj for block in model.transformer.h]
    kept: list[torch.Tensor] = []
    hooks = [output.register_forward_pre_hook(lambda _, given: kept.append(given[0])) for output in outputs]
    begin = time.process_time()
    with torch.inference_mode():
        model(clean)
        for hook in hooks:
            hook.remove()
        places = [(layer, head) for layer in range(own.n_decoder_layers) for head in range(own.n_heads)]
        for first in range(0, len(places), at_once):
            group = places[first : first + at_once]

            def patch(layer: int, z: torch.Tensor, group: list[tuple[int, int]] = group) -> tuple[torch.Tensor]:
                z = z.clone()
                for item, (where, head) in enumerate(group):
                    if where == layer:
                        part = slice(head * own.d_head, (head + 1) * own.d_head)
                        z[item, :, part] = kept[layer][0, :, part]
                return (z,)

            hooks = [
                output.register_forward_pre_hook(lambda _, given, layer=layer: patch(layer, given[0]))
                for layer, output in enumerate(outputs)
            ]
            model(corrupted.expand(len(group), -1))
            for hook in hooks:
                hook.remove()
    click.echo(f"(hooks alone: {time.process_time() - begin:.1f} s)", err=True)


def works(checkpoint: Checkpoint, tokens: int, pairs: int, texts: int) -> dict[str, Callable[[], object]]:
    """What is measured."""
    pair = pair_of(checkpoint, tokens)
    many = [pair_of(checkpoint, min(20, tokens), seed) for seed in range(pairs)]
    heads = [part for part in parts_of(pair.clean) if part.head is not None]
    words = " ".join(["cats and dogs are here"] * 40)
    corpus = Corpus.of([f"{number} {words}" for number in range(texts)])
    return {
        "heads": lambda: patch_runs(checkpoint, pair, "heads", "decoder"),
        "ablations": lambda: sweep(checkpoint, pair.clean, tokens - 1, 11, parts=heads, loss=False),
        "stream": lambda: patch_runs(checkpoint, pair, "stream", "decoder"),
        "pairs": lambda: [patch_runs(checkpoint, one, "heads", "decoder") for one in many],
        "report": lambda: head_report(checkpoint, corpus, threads=1),
        "hooks": lambda: by_hooks(checkpoint, pair),
    }


@click.command()
@click.option("--layers", default=12, show_default=True)
@click.option("--d-model", default=768, show_default=True)
@click.option("--vocab-size", default=50_257, show_default=True)
@click.option("--tokens", default=63, show_default=True)
@click.option("--pairs", default=50, show_default=True)
@click.option("--texts", default=200, show_default=True)
@click.option("--only", type=click.Choice(list(BARS)), multiple=True)
@click.option("--device", default="cpu", show_default=True)
def main(
    layers: int, d_model: int, vocab_size: int, tokens: int, pairs: int, texts: int, only: tuple[str, ...], device: str
) -> None:
    """Measures each in turn, and ends with exit code 1 where one is above its bar."""
    torch.set_num_threads(1)
    config = ModelConfig.preset(
        "gpt2-small",
        vocab_size=vocab_size,
        d_model=d_model,
        d_ff=4 * d_model,
        n_decoder_layers=layers,
        max_positions=126,
        bos_id=None,
        eos_id=None,
    )
    checkpoint = Checkpoint("gpt2-small", tiny.randomise(Transformer(config)).eval().to(device), tiny.tokenizer())
    clock = time.process_time if device == "cpu" else time.perf_counter
    click.echo(f"| what | {'processor seconds' if device == 'cpu' else 'seconds'} | bar |\n| :--- | ---: | ---: |")
    above = False
    for name, work in works(checkpoint, tokens, pairs, texts).items():
        if only and name not in only:
            continue
        begin = clock()
        work()
        seconds, bar = clock() - begin, BARS[name]
        above |= bar is not None and seconds > bar
        click.echo(f"| {ABOUT[name]} | {seconds:.1f} | {bar or '-'} |")
    sys.exit(int(above))


if __name__ == "__main__":
    main()
