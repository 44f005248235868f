"""The process that measures heads for the app: `python -m vizformer.analysis.corpus_heads.worker FOLDER PARENT`.

One thread, low priority, no Streamlit: the pages answer as if nothing were going on.  The folder holds

    request.json     the model's path and what it is opened with
    texts.txt        the corpus, a text a line
    progress         how many texts are done
    sums/            see `vizformer.analysis.corpus_heads.running`: what was stopped goes on
    report.npz       the finished report

It ends by itself when the report is there, and when `vizformer.jobs.worker.Watch` says so.
"""

import contextlib
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from vizformer.analysis.corpus_heads.corpus import Corpus
from vizformer.analysis.corpus_heads.report import write_report
from vizformer.analysis.corpus_heads.running import head_report
from vizformer.checkpoints import load, own_code
from vizformer.errors import VizformerError
from vizformer.jobs.worker import Watch, take_low_priority

UNREADABLE = 3  # the exit status where the model does not open, or reads none of the texts
REQUEST, TEXTS, PROGRESS, REPORT, SUMS = "request.json", "texts.txt", "progress", "report.npz", "sums"


@dataclass(frozen=True)
class Request:
    """A request to a worker: what is to be measured, and of which model (a path, dtype, device)."""

    path: str  # of the server's own code, the name
    answers: dict[str, Any]  # what bare weights are assumed to be, a mapping of their tensors among it
    dtype: str
    device: str
    corpus: str
    texts: tuple[str, ...]  # a text a line, with a tab and its translation where there is one
    code: str = ""  # of a model of the server's own code (`own_code.digest`), else empty

    def write(self, folder: Path) -> None:
        said = asdict(self)
        (folder / TEXTS).write_text("\n".join(said.pop("texts")), encoding="utf-8")
        (folder / REQUEST).write_text(json.dumps(said), encoding="utf-8")


def main(folder: Path, parent: int) -> int:
    """Measures what the folder asks for; the exit status: 0 where the report is there or it was told to end."""
    torch.set_num_threads(1)
    take_low_priority()
    watch = Watch(folder, parent)
    request: dict[str, Any] = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    corpus = Corpus.of((folder / TEXTS).read_text(encoding="utf-8").split("\n"), request["corpus"])

    def tell(done: int, texts: int) -> None:
        new = folder / f"{PROGRESS}.new"
        new.write_text(str(done), encoding="utf-8")
        new.replace(folder / PROGRESS)

    try:
        if request["code"]:
            checkpoint: Any = own_code.unchanged(request["path"], request["code"])
        else:
            checkpoint = load(request["path"], dtype=request["dtype"], device=request["device"], **request["answers"])
        report = head_report(checkpoint, corpus, work=folder / SUMS, threads=1, tell=tell, stop=watch)
    except VizformerError as error:
        sys.stderr.write(f"{error}\n")
        return UNREADABLE
    if report is not None:
        write_report(report, folder / REPORT)
    return 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
