"""What every head of the bundled models does, measured on the texts with which the page What each head does begins.

    python -m recipes.head_reports assets/head_reports      # a minute on one core

Reports of other weights or texts in the folder are removed.
"""

from pathlib import Path

import torch

from recipes.arguments import paths
from vizformer import load
from vizformer.analysis.corpus_heads import bundled_corpus, head_report
from vizformer.analysis.corpus_heads.report import path_of_bundled_report, write_report
from vizformer.assets import asset, bundled_models


def make(folder: Path) -> list[Path]:
    """Measures all of them; the files, one a model."""
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name in bundled_models():
        checkpoint = load(name)
        corpus = bundled_corpus("zh" if checkpoint.model.config.architecture == "encoder-decoder" else "en")
        report = head_report(checkpoint, corpus, threads=1)
        if report is not None:
            made.append(folder / path_of_bundled_report(asset("models", name), corpus).name)
            write_report(report, made[-1])
    for path in set(folder.glob("*.npz")) - set(made):
        path.unlink()
    return made


if __name__ == "__main__":
    make(*paths(1, __doc__))
