"""How good the models of running text are: bits per byte of a continuation, and hidden words found."""

import math
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from recipes.batches import Row
from recipes.bundled_models.cloze import N_SPECIAL, ClozeData
from recipes.bundled_models.recipe import mean_loss
from recipes.bundled_models.stories import CONTEXT, next_token_row
from recipes.corpus import Corpus
from recipes.vocabulary import BOS
from vizformer.checkpoints.own import Checkpoint
from vizformer.model import Transformer
from vizformer.training.loss import IGNORED

PROMPTS = (
    "Once upon a time there was a princess who",
    "The little rabbit",
    '"Come here," said the king,',
    "Tom wanted to",
    "今天天气",
    "我不知道",
    "他是",
)
BLANKS = (
    "The cat sat on the [MASK].",
    "She [MASK] the door and went in.",
    "I have a [MASK] and a dog.",
    "我有一只[MASK]。",
    "你[MASK]什么名字？",
    "今天天气很[MASK]。",
    "我喜[MASK]你。 [SEP] I like you.",
)


def windows(checkpoint: Checkpoint, text: str) -> list[Row]:
    """A text cut into windows of the context, each token predicted once, from what stands before it in its window."""
    bos = checkpoint.tokenizer.id_of(BOS)
    assert bos is not None
    ids = checkpoint.tokenizer.encode_ids([text])[0][1:]
    return [next_token_row([bos, *ids[i : i + CONTEXT]]) for i in range(0, len(ids), CONTEXT)]


def bits_per_byte(model: Transformer, rows: Sequence[Row], n_bytes: int, pad_id: int) -> float:
    """Total cross-entropy in bits over the UTF-8 bytes of the text: comparable between vocabularies."""
    n_tokens = sum(len(row.labels) for row in rows)
    return mean_loss(model, rows, pad_id) * n_tokens / math.log(2) / n_bytes


@torch.inference_mode()
def evaluate_stories(checkpoint: Checkpoint, corpus: Corpus) -> dict[str, Any]:
    """Bits per byte of the held-out book and Chinese sentences, and continuations."""
    started = time.perf_counter()
    pad = checkpoint.model.config.pad_id
    assert pad is not None
    book = "\n".join(corpus.test_book)
    chinese = list(dict.fromkeys(pair.source for pair in corpus.held_out_pairs))
    sentences = [row for text in chinese for row in windows(checkpoint, text)]
    return {
        "book": {
            "bytes": len(book.encode()),
            "bits_per_byte": round(
                bits_per_byte(checkpoint.model, windows(checkpoint, book), len(book.encode()), pad), 3
            ),
        },
        "chinese": {
            "sentences": len(chinese),
            "bits_per_byte": round(bits_per_byte(checkpoint.model, sentences, len("".join(chinese).encode()), pad), 3),
        },
        "samples": {prompt: checkpoint.generate(prompt, max_new=40).text for prompt in PROMPTS},
        "seconds": round(time.perf_counter() - started, 1),
    }


@torch.inference_mode()
def evaluate_cloze(checkpoint: Checkpoint, corpus: Corpus) -> dict[str, Any]:
    """Accuracy and perplexity at hidden tokens of held-out text, beside a bigram model of the same training text."""
    started = time.perf_counter()
    data = ClozeData(corpus, checkpoint.tokenizer)
    bigram = Bigram(data)
    held_out = {"book": data.test_rows(), "chinese": data.held_out()["chinese"]}
    results: dict[str, Any] = {}
    for name, rows in held_out.items():
        results[name] = {
            "hidden": sum(label != IGNORED for row in rows for label in row.labels),
            **_scores(_model_log_p(checkpoint.model, row) for row in rows),
            "bigram": _scores(bigram.log_p(row) for row in rows),
        }
    results["samples"] = {text: _fillings(checkpoint, text) for text in BLANKS}
    results["seconds"] = round(time.perf_counter() - started, 1)
    return results


def _model_log_p(model: Transformer, row: Row) -> tuple[Tensor, Tensor]:
    """Log-probabilities [hidden, vocab_size] at the hidden positions, and what stood there."""
    labels = torch.tensor(row.labels)
    hidden = labels != IGNORED
    x = model.encode(torch.tensor([row.ids]), segments=torch.tensor([row.segments]))
    return torch.log_softmax(model.logits(x[0, hidden]), dim=-1), labels[hidden]


class Bigram:
    """What a word pair model makes of a hidden token: p(x | left, right) ~ p(x | left) p(right | x).

    Pairs are counted in the training text and mixed with the counts of single tokens,
    p(b | a) = (n(a, b) + strength * p(b)) / (n(a) + strength) (MacKay & Peto 1995).  A neighbour that is hidden too
    says nothing.
    """

    strength = 50.0  # the best of 5, 20, 50, 100, 200 on the validation book

    def __init__(self, data: ClozeData) -> None:
        size = data.vocab_size
        streams = [ids for book in data.books for ids in book] + data.english
        streams += [ids for pair in data.pairs for ids in pair]
        left, right = [], []
        for ids in streams:
            row = [data.cls, *ids, data.sep]
            left += row[:-1]
            right += row[1:]
        codes = torch.tensor(left) * size + torch.tensor(right)
        pairs = torch.bincount(codes, minlength=size * size).view(size, size).float()  # [left, right]
        single = pairs.sum(0) + 0.1
        self.single = single / single.sum()  # [vocab_size]
        self.pair = (pairs + self.strength * self.single) / (pairs.sum(1, keepdim=True) + self.strength)
        self.mask = data.mask

    def log_p(self, row: Row) -> tuple[Tensor, Tensor]:
        """As `_model_log_p`."""
        found, labels = [], []
        for i, label in enumerate(row.labels):
            if label == IGNORED:
                continue
            before, after = row.ids[i - 1], row.ids[i + 1]
            p = self.single if before == self.mask else self.pair[before]
            if after != self.mask:
                p = p * self.pair[:, after]
            found.append((p / p.sum()).log())
            labels.append(label)
        return torch.stack(found), torch.tensor(labels)


def _scores(found: Any) -> dict[str, float]:
    right, total, nats = 0, 0, 0.0
    for log_p, labels in found:
        right += int((log_p.argmax(-1) == labels).sum())
        nats -= float(log_p.gather(-1, labels[:, None]).sum())
        total += len(labels)
    return {"accuracy": round(right / total, 4), "perplexity": round(math.exp(nats / total), 1)}


def _fillings(checkpoint: Checkpoint, text: str, count: int = 3) -> str:
    trace = checkpoint.trace(text)
    tokens = trace.tokens["encoder"]
    position = next(i for i, token in enumerate(tokens) if token.id == checkpoint.model.config.mask_id)
    p = torch.softmax(trace.logits[position], dim=-1)
    p[:N_SPECIAL] = 0
    best = p.topk(count)
    words = checkpoint.tokenizer.tokens(best.indices.tolist())
    return ", ".join(f"{token.text} {value:.0%}" for token, value in zip(words, best.values.tolist(), strict=True))
