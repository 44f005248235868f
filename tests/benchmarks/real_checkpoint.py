"""From a link to the first telling head of a checkpoint, to another head, and to another text.

    python -m tests.benchmarks.real_checkpoint        # MiniLM, where it was fetched, and the shape of GPT-2 small
    python -m tests.benchmarks.real_checkpoint --qwen3               # the shape of Qwen3-0.6B too, in bfloat16: 1.2 GB
    python -m tests.benchmarks.real_checkpoint --folder DIR       # a folder of your own; any number of them
    python -m tests.benchmarks.real_checkpoint --limits 2,0.15,0.6      # exit code 1 above them, in seconds

Measured in headless Chromium, with a fresh server for each model, started the way users start it.  The tab shows a bundled
model first ("warm").  From there the link of the model is opened: "painted" ends when the large map of a head and the
sentence below it are there, and includes reading the files.  Another head is a click on a small map; another text has 60
tokens, about, from Enter to its map.  "head" is the head that it opened on.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import click
import torch
from playwright.sync_api import Page, sync_playwright

from tests.benchmarks.views import DEEP, PRESSED, SHOWN, make
from tests.browser import chromium
from tests.browser.driver import Server
from tests.bundled import MINILM
from vizformer import load
from vizformer.config import ModelConfig

TEXT = (
    "The engineer who had measured all the heads of the model on the table told her friend that the small one by the window "
    "looked at the word before, that the large one rested on the first token, and that nobody knew what the others did with "
    "the words between them, so they wrote it down in the evening for the paper."
)
READ = """() => {
  %s
  const told = at(".vf-attention .vf-readout")?.dataset;
  const view = at(".vf-attention");
  return told?.value ? `${told.query} ${told.value} ${view.dataset.layer} ${view.dataset.head}` : "";
}"""
QWEN3 = dict(
    vocab_size=151_936,
    d_model=1024,
    n_heads=16,
    head_dim=128,
    n_kv_heads=8,
    d_ff=3072,
    n_decoder_layers=28,
    max_positions=32_768,
    rope_theta=1e6,
    qk_norm=True,
    tied_unembedding=True,
)
"""Qwen3-0.6B's, by its config.json."""
WARM, REPEATS, PATIENCE_MS = "/attention?model=stories&lang=en", 3, 120_000


class Times(NamedTuple):
    """Seconds; `head` is the layer and the head that the page opened on."""

    painted: float
    head: str
    another_head: float
    another_text: float


def until(page: Page, before: str) -> tuple[float, str]:
    """When the map that is read out is another one than `before`."""
    page.wait_for_function(
        f"(before) => {{ const now = ({READ % DEEP})(); return now && now !== before; }}", arg=before
    )
    return time.perf_counter(), str(page.evaluate(READ % DEEP))


def measured(folder: Path, text: str) -> Times:
    """One model, on a server and in a browser of their own."""
    with tempfile.TemporaryDirectory() as logs, sync_playwright() as playwright:
        server = Server(env={**os.environ, "VIZFORMER_MODELS": str(folder.parent)}, log=Path(logs) / "server.log")
        browser = playwright.chromium.launch(executable_path=str(chromium.find()), args=chromium.ARGUMENTS)
        try:
            page = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-US").new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.goto(server.url + WARM)
            until(page, "")
            page.wait_for_timeout(3000)  # what the browser fetches while nobody waits
            began = time.perf_counter()
            page.goto(f"{server.url}/attention?model=models/{folder.name}&lang=en")
            end, seen = until(page, "")
            painted, (__, ___, layer, head) = end - began, seen.split()
            page.evaluate(PRESSED)
            page.wait_for_timeout(3000)
            switches = []
            for at in (1, 5, 9):
                tile = page.locator(".vf-tile").nth(at)
                chosen = [int(tile.get_attribute(f"data-{name}") or 0) for name in ("layer", "head")]
                tile.click()
                switches.append(page.wait_for_function(SHOWN % DEEP, arg=chosen).json_value() / 1000)
            seen, began = str(page.evaluate(READ % DEEP)), time.perf_counter()
            box = page.get_by_label("Sentence", exact=True)
            box.fill(text)
            box.press("Enter")
            end, __ = until(page, seen)
            return Times(painted, f"{layer}.{head}", statistics.median(switches), end - began)
        finally:
            browser.close()
            server.stop()


def cut(folder: Path, text: str) -> str:
    """The first words of a text, until they are 60 tokens of a model."""
    reader = load(folder).tokenizer_of("encoder")
    words = text.split()
    lengths = (len(reader.encode(" ".join(words[:n]))) for n in range(1, len(words)))
    return " ".join(words[: next((n for n, length in enumerate(lengths, 1) if length >= 60), None)])


@click.command(context_settings={"help_option_names": ["-h", "--help"]}, help=__doc__)
@click.option("--folder", "folders", multiple=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--limits", default="", help="seconds to the painted head, to another head, to another text")
@click.option("--qwen3", is_flag=True)
def main(folders: tuple[Path, ...], limits: str, qwen3: bool) -> None:
    print("| model | link to painted head, s | head | another head, s | another text, s |")
    print("| --- | ---: | ---: | ---: | ---: |")
    late = False
    with tempfile.TemporaryDirectory() as made:
        every = list(folders) or ([MINILM] if MINILM else [])
        if not folders:
            make(Path(made), ModelConfig.preset("gpt2-small", vocab_size=50_257))
            if qwen3:
                make(Path(made), ModelConfig.preset("llama-7b", **QWEN3), "qwen3-shape", torch.bfloat16)
            every += [path for path in Path(made).iterdir() if path.is_dir()]
        for folder in every:
            text = cut(folder, TEXT)
            runs = [measured(folder, text) for __ in range(REPEATS)]
            painted = statistics.median(run.painted for run in runs)
            switch = statistics.median(run.another_head for run in runs)
            other = statistics.median(run.another_text for run in runs)
            print(f"| {folder.name} | {painted:.2f} | {runs[0].head} | {switch:.3f} | {other:.2f} |", flush=True)
            most = [float(limit) for limit in limits.split(",") if limit]
            late |= any(found > limit for found, limit in zip((painted, switch, other), most, strict=False))
    sys.exit(late)


if __name__ == "__main__":
    main()
