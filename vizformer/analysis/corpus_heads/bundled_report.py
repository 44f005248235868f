"""Reports that come with VizFormer: of a bundled model, on a bundled corpus."""

import hashlib
from pathlib import Path

from vizformer.analysis.corpus_heads.corpus import Corpus
from vizformer.assets import asset

WEIGHTS = "model.safetensors"


def path_of_bundled_report(model: Path, corpus: Corpus) -> Path:
    """Where the report on the model in a folder would lie, whether it is there or not.

    Its name says weights and texts: a report of others is never taken for it.
    """
    return asset("head_reports", f"{digest(model, corpus.key)}.npz")


def digest(model: Path, key: str = "") -> str:
    """Says which weights are in a folder, for what was measured with them."""
    return hashlib.blake2b((model / WEIGHTS).read_bytes(), digest_size=8, key=key.encode()).hexdigest()
