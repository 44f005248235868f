"""A classifier on top of the bundled encoder: which of four topics is a sentence about?  Trained live on a hundred of them.

    p(topic | sentence) = softmax(W m + b)

words    m counts the tokens of the sentence: no Transformer at all, to be compared with
frozen   m is the mean of the rows that leave the last layer, over all tokens; only W and b are trained
tuned    the same, and every weight of the encoder is trained with them

`main` is what a process of its own does, of low priority, which `vizformer.jobs.queue` starts.  Its folder holds

    settings.json       the language of the sentences
    progress.jsonl      a line for each epoch of each way, and the ending
    model/              the tuned encoder in our own format
    heads.safetensors   W and b of each way

Source: Devlin et al. 2018, section 3.2 (fine-tuning) and 5.3 (the features of a frozen body).
"""

import contextlib
import copy
import json
import math
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from vizformer.assets import asset
from vizformer.checkpoints import Checkpoint, load, save
from vizformer.freed_memory import keep_freed_memory
from vizformer.jobs.worker import FULL, Watch, is_full, read_lines, take_low_priority
from vizformer.model import Transformer
from vizformer.training.loss import fast_short_attention

Body = Literal["words", "frozen", "tuned"]
BODIES: tuple[Body, ...] = get_args(Body)
MODEL, TOPICS = "cloze", ("animals", "food", "weather", "travel")
HELD_OUT = (2, 5)  # the held-out ones of every seven sentences
EPOCHS, BATCH = 8, 10
RATES = {"words": 0.05, "frozen": 0.02, "tuned": 0.01}  # the learning rates of W and b
BODY_RATE = 3e-4  # the learning rate of the encoder, if it is trained
LONGEST = 64  # tokens of a sentence
SECONDS = 60.0  # the longest training, on any machine
SETTINGS, PROGRESS, TUNED, HEADS = "settings.json", "progress.jsonl", "model", "heads.safetensors"


@dataclass(frozen=True)
class Epoch:
    """One of the three ways after some epochs: mean losses in nats, and how many held-out sentences it classifies
    correctly.
    """

    body: Body
    epoch: int
    loss: float
    held_out: float
    right: int


class Reached(NamedTuple):
    """The state of a training: its head, and its encoder, which is the bundled one unless it is tuned."""

    epoch: Epoch
    head: nn.Linear
    model: Transformer


@cache
def sentences(language: str, *, held_out: bool) -> tuple[tuple[str, int], ...]:
    """The sentences of a language with the numbers of their topics: those to train on, or those that are held out."""
    topics = tomllib.loads(asset("lessons", "training", "topics.toml").read_text(encoding="utf-8"))
    found = (
        (text, number)
        for number, topic in enumerate(TOPICS)
        for index, text in enumerate(topics[topic][language])
        if (index % 7 in HELD_OUT) == held_out
    )
    return tuple(found)


def interval(right: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % confidence interval of an accuracy, where `right` of n are correct, p = right / n (Wilson 1927).

    (p + z^2 / 2n ± z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)
    """
    p, wide = right / n, 1 + z * z / n
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (p + z * z / (2 * n) - half) / wide, (p + z * z / (2 * n) + half) / wide


def ids_of(checkpoint: Checkpoint, texts: tuple[str, ...]) -> Int[Tensor, "b n"]:
    """The token ids of the texts, padded on the right; of a long text the first `LONGEST`."""
    rows = [torch.tensor([token.id for token in checkpoint.encode(text)[:LONGEST]]) for text in texts]
    return pad_sequence(rows, batch_first=True, padding_value=checkpoint.model.config.pad_id or 0)


def features(body: Body, model: Transformer, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b features"]:
    """The input of the head: counts of tokens, or the mean of the rows of the last layer (without the padding)."""
    real = ids.ne(model.config.pad_id or 0)
    if body == "words":
        counts = F.one_hot(ids, model.config.vocab_size) * real[..., None]  # [b, n, vocab_size]
        return counts.sum(1).float()
    rows = model.encode(ids, padding=~real, segments=torch.zeros_like(ids))  # [b, n, d]
    return (rows * real[..., None]).sum(1) / real.sum(1, keepdim=True)


def train(
    body: Body, checkpoint: Checkpoint, language: str, stop: Callable[[], bool] = lambda: False
) -> Iterator[Reached]:
    """Trains one way; yields its state before the first epoch and after each."""
    torch.manual_seed(0)
    pairs, asked = sentences(language, held_out=False), sentences(language, held_out=True)
    ids, questions = (ids_of(checkpoint, tuple(text for text, __ in some)) for some in (pairs, asked))
    topics, answers = (torch.tensor([topic for __, topic in some]) for some in (pairs, asked))
    tuned = body == "tuned"
    model = copy.deepcopy(checkpoint.model).requires_grad_() if tuned else checkpoint.model
    with torch.no_grad():
        kept, new = features(body, model, ids), features(body, model, questions)
    head = nn.Linear(kept.shape[1], len(TOPICS))
    groups = [{"params": list(head.parameters()), "lr": RATES[body], "weight_decay": 0.01}]
    if tuned:
        groups.append({"params": list(model.parameters()), "lr": BODY_RATE, "weight_decay": 0.01})
    optimizer = torch.optim.AdamW(groups)
    for epoch in range(EPOCHS + 1):
        total = 0.0
        for rows in torch.split(torch.randperm(len(ids)), BATCH) if epoch else ():
            with fast_short_attention(torch.device("cpu")):
                loss = F.cross_entropy(head(features(body, model, ids[rows]) if tuned else kept[rows]), topics[rows])
                optimizer.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            total += len(rows) * loss.item()
            if stop():
                return
        with torch.no_grad():
            if tuned:
                new = features(body, model, questions)
            first = F.cross_entropy(head(kept), topics).item()
            logits = head(new)
        loss_of_new, right = F.cross_entropy(logits, answers).item(), int(logits.argmax(1).eq(answers).sum())
        yield Reached(Epoch(body, epoch, total / len(ids) if epoch else first, loss_of_new, right), head, model)


def read(folder: Path) -> tuple[list[Epoch], str]:
    """The epochs so far of a training process, and how it ended ("" while it runs)."""
    found, ending = read_lines(folder / PROGRESS)
    return [Epoch(**one) for one in found], ending


def probabilities(folder: Path, text: str) -> dict[Body, list[float]]:
    """The probability of each topic for a sentence, by each of the three ways."""
    heads, bundled, tuned = load_file(folder / HEADS), load(MODEL), load(folder / TUNED)
    ids, found = ids_of(bundled, (text,)), dict[Body, list[float]]()
    for body in BODIES:
        with torch.no_grad():
            read_by = features(body, (tuned if body == "tuned" else bundled).model, ids)
            logits = F.linear(read_by, heads[f"{body}.weight"], heads[f"{body}.bias"])
        found[body] = logits.softmax(1)[0].tolist()
    return found


def main(folder: Path, parent: int) -> int:
    """Trains all three ways for the process `parent`; returns the exit status."""
    torch.set_num_threads(1)
    take_low_priority()
    keep_freed_memory()
    language = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))["language"]
    watch, end, ending = Watch(folder, parent), time.monotonic() + SECONDS, "done"

    def stop() -> bool:
        nonlocal ending
        ending = watch.ending(end) or ending
        return ending != "done"

    checkpoint, heads = load(MODEL), dict[str, Tensor]()
    try:
        with (folder / PROGRESS).open("a", encoding="utf-8") as file:
            for body in BODIES:
                for reached in train(body, checkpoint, language, stop):
                    file.write(json.dumps(asdict(reached.epoch)) + "\n")
                    file.flush()
                state = reached.head.state_dict()
                heads |= {f"{body}.{name}": part.contiguous() for name, part in state.items()}
            if ending == "done":
                save(Checkpoint(MODEL, reached.model, checkpoint.tokenizer), folder / TUNED, torch.float16)
                save_file(heads, folder / HEADS)
            file.write(json.dumps({"ending": ending}) + "\n")
    except OSError as error:
        if is_full(error):
            return FULL
        if folder.is_dir():
            raise  # otherwise the folder was removed: nobody waits for the result
    return 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
