"""How fast text is generated: greedy tokens per second with the KV cache, beside `transformers` in the same shape.

    python -m tests.benchmarks.generation                  # the table of README.md; exit code 1 if ours is slower
    python -m tests.benchmarks.generation --shapes stories --rounds 3

One process, batch 1, float32, random weights, no end mark, so that both write the same number of tokens.  In every
round each side writes once, in turns, so that a machine that slows down slows both; reported are medians, and the
median of the rounds' own ratios.  The floor is what no program in float32 can beat: every token needs each weight once,
so it takes at least the bytes of the weights / the memory's bandwidth, measured by summing an array far larger than
the caches (weights that fit into the processor's cache can be quicker than that).
"""

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
import torch

from tests.benchmarks.trace import processor
from tests.greedy import greedy_steps
from vizformer.config import ModelConfig
from vizformer.model import Transformer

LIMIT = 1.0
PROMPT = 16
LLAMA: dict[str, Any] = dict(
    positions="rope",
    norm_order="pre",
    norm="rms_norm",
    final_norm=True,
    activation="silu",
    feedforward="gated",
    bias=False,
    dropout=0.0,
)
SHAPES: dict[str, ModelConfig] = {
    # the bundled models' own shapes, and GPT-2 small
    "stories": ModelConfig(
        vocab_size=6000, d_model=256, n_heads=8, n_kv_heads=4, d_ff=640, n_decoder_layers=5, max_positions=512, **LLAMA
    ),
    "zh-en": ModelConfig(
        vocab_size=8000,
        d_model=256,
        n_heads=4,
        d_ff=1024,
        n_encoder_layers=3,
        n_decoder_layers=3,
        max_positions=512,
        scaled_embedding=True,
        dropout=0.0,
    ),
    "gpt2-small": ModelConfig.preset("gpt2-small", bos_id=None, eos_id=None),
}

Write = Callable[[int], int]
"""Writes so many new tokens, and says how many it wrote."""


@dataclass
class Result:
    """Seconds of each round."""

    ours: list[float]
    theirs: list[float]

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return statistics.median(t / o for o, t in zip(self.ours, self.theirs, strict=True))


def prompt(config: ModelConfig) -> list[int]:
    return torch.randint(3, config.vocab_size, (PROMPT,), generator=torch.Generator().manual_seed(0)).tolist()


def ours(config: ModelConfig) -> tuple[Write, int]:
    """Our model, and the bytes of weights that a token needs."""
    torch.manual_seed(0)
    model = Transformer(config).eval().requires_grad_(False)
    ids = prompt(config)
    prefix = [1] if model.encoder is not None else []

    def write(count: int) -> int:
        return len(greedy_steps(model, ids, prefix, max_new=count))

    read = sum(p.numel() for name, p in model.named_parameters() if not name.startswith(("encoder.", "position_")))
    return write, 4 * read


def theirs(config: ModelConfig) -> Write:
    """The model of `transformers` in the same shape."""
    import transformers

    common = dict(vocab_size=config.vocab_size, bos_token_id=None, eos_token_id=None, pad_token_id=0)
    if config.architecture == "encoder-decoder":
        shape: Any = transformers.MarianConfig(
            **common,
            d_model=config.d_model,
            encoder_layers=config.n_encoder_layers,
            decoder_layers=config.n_decoder_layers,
            encoder_attention_heads=config.n_heads,
            decoder_attention_heads=config.n_heads,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            max_position_embeddings=config.max_positions,
            activation_function="relu",
            decoder_start_token_id=1,
            forced_eos_token_id=None,
            scale_embedding=True,
        )
        model: Any = transformers.MarianMTModel(shape)
    elif config.positions == "rope":
        shape = transformers.LlamaConfig(
            **common,
            hidden_size=config.d_model,
            intermediate_size=config.d_ff,
            num_hidden_layers=config.n_decoder_layers,
            num_attention_heads=config.n_heads,
            num_key_value_heads=config.kv_heads,
            max_position_embeddings=config.max_positions,
            tie_word_embeddings=True,
        )
        model = transformers.LlamaForCausalLM(shape)
    else:
        shape = transformers.GPT2Config(
            **common,
            n_embd=config.d_model,
            n_head=config.n_heads,
            n_layer=config.n_decoder_layers,
            n_inner=config.d_ff,
            n_positions=config.max_positions,
        )
        model = transformers.GPT2LMHeadModel(shape)
    model = model.eval().requires_grad_(False)
    ids = torch.tensor([prompt(config)])
    start = 1 if config.architecture == "encoder-decoder" else PROMPT

    def write(count: int) -> int:
        with torch.inference_mode():
            made = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                num_beams=1,
                max_new_tokens=count,
                min_new_tokens=count,
                use_cache=True,
                eos_token_id=None,
            )
        return int(made.shape[1]) - start

    return write


def measure(first: Write, second: Write, count: int, rounds: int) -> Result:
    result = Result([], [])
    for write in (first, second):
        write(8)  # once for nothing: memory is claimed and kernels are chosen
    for turn in range(rounds):
        sides = [(first, result.ours), (second, result.theirs)]
        for write, seconds in sides if turn % 2 == 0 else reversed(sides):
            started = time.perf_counter()
            written = write(count)
            seconds.append(time.perf_counter() - started)
            if written != count:
                raise SystemExit(f"{written} tokens were written instead of {count}")
    return result


def bandwidth(repeats: int = 7) -> float:
    """Bytes per second at which memory is read, the best of some runs."""
    array = torch.ones(2**26)  # 256 MiB
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        array.sum()
        best = min(best, time.perf_counter() - started)
    return array.numel() * array.element_size() / best


@click.command()
@click.option("--shapes", default=",".join(SHAPES), show_default=True)
@click.option("--threads", default="1,2", show_default=True)
@click.option("--tokens", default=128, show_default=True, type=click.IntRange(1), help="New tokens a round.")
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(1))
def main(shapes: str, threads: str, tokens: int, rounds: int) -> None:
    """Greedy tokens per second, ours and transformers'."""
    import transformers

    transformers.logging.set_verbosity_error()
    rows, slowest = [], float("inf")
    for name in shapes.split(","):
        config = SHAPES[name]
        write, weights = ours(config)
        other = theirs(config)
        for count in map(int, threads.split(",")):
            torch.set_num_threads(count)
            result = measure(write, other, tokens, rounds)
            speed = bandwidth()
            slowest = min(slowest, result.ratio)
            per_token = statistics.median(result.ours) / tokens
            rows.append(
                f"| {name} | {count} | {1 / per_token:.0f} | {tokens / statistics.median(result.theirs):.0f} "
                f"| {result.ratio:.2f} | {weights / 2**20:.0f} | {speed / 1e9:.1f} | {1000 * weights / speed:.2f} "
                f"| {1000 * per_token:.2f} |"
            )
            print(f"  {name}, {count} thread(s) done", file=sys.stderr)
    print(
        "| shape | threads | tokens/s | transformers, tokens/s | ours / theirs | weights, MiB | memory, GB/s "
        "| floor, ms a token | ours, ms a token |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    print("\n".join(rows))
    print(
        f"\n{tokens} new tokens after {PROMPT}, batch 1, float32, random weights; medians of {rounds} alternating "
        f"rounds.\n{processor('cpu')}; torch {torch.__version__}, transformers {transformers.__version__}."
    )
    verdict = "not slower" if slowest >= LIMIT else "SLOWER"
    print(f"the smallest ratio is {slowest:.2f}: {verdict} than transformers")
    sys.exit(slowest < LIMIT)


if __name__ == "__main__":
    main()
