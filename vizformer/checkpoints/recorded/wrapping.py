"""`vf.wrap`: a module with its tokenizer becomes a checkpoint; what it is is found by running it once."""

import contextlib
import inspect
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from tokenizers import Tokenizer as Backend
from torch import nn

from vizformer.checkpoints.recorded.checkpoint import RecordedCheckpoint
from vizformer.checkpoints.recorded.edits import Places
from vizformer.checkpoints.recorded.reading import Run, answer_of, reads_target, rows_of, usual_run
from vizformer.config import ModelShape
from vizformer.errors import CheckpointError, TokenizerError, TraceError, VizformerError
from vizformer.text import Token, Tokenizer
from vizformer.text.pieces import readable
from vizformer.text.tokenizer import IdTokenizer

MAX_POSITIONS = 1024  # tokens of a model that does not say how many it can read
_MOST_TRIED = 6  # lengths
_PROBE, _TARGET_PROBE = 6, 4  # token ids of the run that finds out what a model is

_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length", "block_size", "n_ctx")
_PIECES = {"eos_id": ("</s>", "[SEP]", "<|endoftext|>", "<eos>"), "mask_id": ("[MASK]", "<mask>")}

_MOST_HASHED = 300_000  # ids of which `to_json` writes down the texts


class AnyTokenizer(Tokenizer):
    """Wraps an object with `encode(text) -> ids` and `decode(ids) -> text`; a token's piece is decode([id])."""

    def __init__(self, coder: Any, rows: int) -> None:
        self._coder, self._rows = coder, rows
        self._special = {id for id in getattr(coder, "all_special_ids", ()) if isinstance(id, int)}
        self._text = lru_cache(maxsize=2**16)(self._decoded)

    def _decoded(self, id: int) -> str:
        """The text of a token; of one without, or of a part of a character, its id."""
        text = self.decode([id])
        return text if text.strip("\ufffd") else f"[{id}]"

    def _failed(self, what: str, error: Exception) -> TokenizerError:
        return TokenizerError(
            "The tokenizer's own code stopped at {what} ({kind}: {error}). Use a text that it can read, "
            "or correct the code.",
            what=what,
            kind=type(error).__name__,
            error=str(error)[:200],
        )

    @property
    def vocab_size(self) -> int:
        return self._rows

    def encode(self, text: str, *, special: bool = True) -> tuple[Token, ...]:
        try:
            ids = [int(id) for id in self._coder.encode(text)]
        except VizformerError:
            raise
        except Exception as error:  # whatever a stranger's code raises
            raise self._failed("encode", error) from error
        return self._placed(self.tokens(ids), text)

    def encode_target(self, text: str) -> tuple[Token, ...]:
        return self.encode(text, special=False)

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [[token.id for token in self.encode(text)] for text in texts]

    @staticmethod
    def _placed(tokens: tuple[Token, ...], text: str) -> tuple[Token, ...]:
        """The tokens with their places in the text, as far as their texts are found there one after the other."""
        placed, at = [], 0
        for token in tokens:
            word = token.piece.strip()
            start = text.find(word, at) if word and not token.special else -1
            if start < 0 or text[at:start].strip():
                placed.append(token)
                continue
            at = start + len(word)
            placed.append(Token(token.id, token.text, token.piece, start, at, len(text[: start + 1].split()) - 1))
        return tuple(placed)

    def tokens(self, ids: list[int]) -> tuple[Token, ...]:
        return tuple(self._token(id) for id in ids)

    def _token(self, id: int, start: int = 0, end: int = 0, word: int | None = None) -> Token:
        if not 0 <= id < self._rows:
            raise TokenizerError(
                "Token id {id} is not in the vocabulary: ids go from 0 to {last}.", id=id, last=self._rows - 1
            )
        text = self._text(id)
        return Token(id, readable(text, "plain"), text, start, end, word, id in self._special)

    def decode(self, ids: list[int]) -> str:
        try:
            return str(self._coder.decode([id for id in ids if len(ids) == 1 or id not in self._special]))
        except Exception as error:  # whatever a stranger's code raises
            raise self._failed("decode", error) from error

    def id_of(self, piece: str) -> int | None:
        try:
            ids = [int(id) for id in self._coder.encode(piece)]
        except Exception:  # a piece that it does not know
            return None
        return ids[0] if len(ids) == 1 and self._text(ids[0]) == piece else None

    @property
    def unknown_id(self) -> int | None:
        found = getattr(self._coder, "unk_token_id", None)
        return found if isinstance(found, int) else None

    def bytes_of(self, id: int) -> bytes:
        return self._token(id).piece.encode()

    def with_rows(self, rows: int) -> Tokenizer:
        return AnyTokenizer(self._coder, max(rows, self._rows))

    def to_json(self) -> str:
        """The text of every id: two that agree in it are one for whoever looks."""
        return repr([type(self._coder).__qualname__, *map(self._said, range(min(self._rows, _MOST_HASHED)))])

    def _said(self, id: int) -> str:
        try:
            return self._decoded(id)
        except TokenizerError:
            return ""


def wrap(
    model: nn.Module,
    tokenizer: Any = None,
    *,
    name: str | None = None,
    run: Run | None = None,
    max_positions: int | None = None,
    start_ids: tuple[int, ...] | None = None,
    eos_id: int | None = None,
    pad_id: int | None = None,
    mask_id: int | None = None,
) -> RecordedCheckpoint:
    """Any PyTorch model as a checkpoint: its own code computes, and what its attention does is recorded.

    The model is put into evaluation and run once, on a few token ids.  Marks and lengths are read from its `config` and from
    the tokenizer where they say them.

    Args:
        tokenizer: one of ours, of `tokenizers` or of `transformers`, or an object with encode(text) -> ids and
            decode(ids) -> text; None: token ids are typed.
        name: what it is called; None: by its class.
        run: runs the model once: `run(model, ids)`, of an encoder-decoder `run(model, ids, target_ids)`, ids [1, n] on its
            device; hands back logits [1, n, vocab_size] or an object with `.logits`. None: `model(input_ids=ids,
            decoder_input_ids=target_ids)` where the forward has such names, else `model(ids, target_ids)`.
        max_positions: the longest text in tokens; None: as the model says, else as far as its code runs, at most 1024.
        start_ids: what the decoder of an encoder-decoder begins with.
        eos_id: the id of the end mark.
        pad_id: that of padding.
        mask_id: that of [MASK].

    Raises:
        CheckpointError: no module, no tokenizer, no table of embeddings.
        TraceError: its code stops, or has no attention that is seen.
    """
    if not isinstance(model, nn.Module):
        raise CheckpointError(
            "{kind} is no torch.nn.Module: give the model itself, and then its tokenizer.", kind=type(model).__name__
        )
    model.eval()
    rows = rows_read(model) or int(getattr(tokenizer, "vocab_size", 0) or 0)
    if not rows:
        raise CheckpointError("This model has no nn.Embedding: a model of texts reads token ids by one.")
    reader = as_tokenizer(tokenizer, rows)
    said = {"start_ids": start_ids, "eos_id": eos_id, "pad_id": pad_id, "mask_id": mask_id}
    marks = {**marks_of(model, tokenizer, reader, rows), **{name: one for name, one in said.items() if one is not None}}
    limit = max_positions or longest_text(model, tokenizer) or MAX_POSITIONS
    blank = ModelShape(
        encoder_heads=(1,), d_model=1, d_head=1, vocab_size=rows, input_vocab_size=rows, max_positions=limit, **marks
    )
    made = RecordedCheckpoint(name or type(model).__name__, model, reader, blank, run or usual_run)
    both = reads_target(model) if run is None else _takes_two(run)
    if not max_positions and not longest_text(model, tokenizer):
        limit = _longest_tried(made, both)
    return _found(made, both, {**marks, "max_positions": limit, "input_vocab_size": rows})


def rows_read(model: Any) -> int:
    """The number of token ids a model reads: the rows of get_input_embeddings, else of its first nn.Embedding, else 0."""
    with contextlib.suppress(Exception):  # whatever a stranger's code raises
        if isinstance(weight := model.get_input_embeddings().weight, torch.Tensor):
            return len(weight)
    return next((one.num_embeddings for one in model.modules() if isinstance(one, nn.Embedding)), 0)


def _found(made: RecordedCheckpoint, both: bool, known: dict[str, Any]) -> RecordedCheckpoint:
    """The checkpoint with the shape that a run shows."""
    rows = known["input_vocab_size"]
    marks = {known.get(name) for name in ("eos_id", "pad_id", "mask_id")} | set(known.get("start_ids", ()))
    plain = [id for id in (*range(rows // 2, rows), *range(rows // 2)) if id not in marks][:_PROBE]
    ids = torch.tensor([plain], device=made.device)
    start = [*known.get("start_ids", ()), *plain][:_TARGET_PROBE]
    target = torch.tensor([start], device=made.device) if both else None
    recorded = made.recorded(ids, target)
    if not recorded.sites:
        raise TraceError(
            "No attention was seen while {name} ran. {escaped}", name=made.name, escaped=recorded.escaped or ""
        )
    trace = recorded.as_trace()
    heads = {kind: tuple(trace[site].n_heads for site in trace.sites if _kind(site) == kind) for kind in _KINDS}
    stream = next(iter(trace.residuals.values()), None)
    first = trace[trace.sites[0]]
    width = first.n_heads * first.v.shape[-1] if stream is None else stream.shape[-1]
    found, named = answer_of(recorded.output)
    logits = None if found is None else rows_of(found)
    if any(bool(x.isnan().any()) for x in (logits, stream) if x is not None):
        raise TraceError(
            "{name} computes NaN: its weights or its options are damaged. Copy them again from their source.",
            name=made.name,
        )
    sizes = {rows, made.tokenizer.vocab_size} - {width}
    predicts = logits is not None and (named or logits.shape[-1] in sizes)
    shape = ModelShape(
        encoder_heads=heads["encoder"],
        decoder_heads=heads["decoder"],
        cross_heads=heads["cross"],
        d_model=width,
        d_head=first.q.shape[-1],
        vocab_size=logits.shape[-1] if predicts and logits is not None else rows,
        activation=activation_of(made.module),
        **known,
    )
    tokenizer, places = made.tokenizer.with_rows(shape.vocab_size), Places.of(recorded)
    alone = logits is not None and len(logits) == 1 < len(start if both else plain)
    return RecordedCheckpoint(made.name, made.module, tokenizer, shape, made.run, predicts, alone, places)


_KINDS = ("encoder", "decoder", "cross")


def _kind(site: str) -> str:
    stack, _, what = site.split(".")
    return "cross" if what == "cross" else stack


def _takes_two(run: Run) -> bool:
    return len(inspect.signature(run).parameters) > 2


def _longest_tried(made: RecordedCheckpoint, both: bool) -> int:
    """The longest text of a module that does not say it: of the sizes of its tables the first beyond which its code stops.

    On an accelerator an id or a place outside a table ends the whole process: there the smallest table counts, untried.
    """
    tables = [one.num_embeddings for one in made.module.modules() if isinstance(one, nn.Embedding)][1:]
    others = [size for x in made.module.buffers() for size in x.shape]
    others += [
        size
        for one in made.module.modules()
        if not type(one).__module__.startswith("torch.")
        for x in one.parameters(recurse=False)
        for size in x.shape
    ]
    sizes = sorted({size for size in (*tables, *others) if _PROBE <= size < MAX_POSITIONS})
    if made.device.type != "cpu":
        return min((size for size in tables if size >= _PROBE), default=MAX_POSITIONS)
    for size in sizes[:_MOST_TRIED]:
        given = [torch.zeros(1, size + 1, dtype=torch.long)] * (1 + both)
        try:
            made.recorded(*given)
        except VizformerError:
            return size
    return MAX_POSITIONS


def longest_text(model: nn.Module, tokenizer: Any) -> int | None:
    """How many tokens a config of `transformers`, or a tokenizer, says that a model reads."""
    config = getattr(model, "config", None)
    said = [getattr(config, name, None) for name in _POSITIONS] + [getattr(tokenizer, "model_max_length", None)]
    return next((one for one in said if isinstance(one, int) and 0 < one < 2**24), None)


def marks_of(model: nn.Module, tokenizer: Any, reader: Tokenizer, rows: int) -> dict[str, Any]:
    """The marks that a config of `transformers`, or a tokenizer, names."""
    config = getattr(model, "config", None)

    def said(*names: str) -> int | None:
        for one in (config, tokenizer):
            for name in names:
                id = getattr(one, name, None)
                id = id[0] if isinstance(id, list | tuple) and id else id
                if isinstance(id, int) and 0 <= id < rows:
                    return id
        return None

    found = {
        "eos_id": said("eos_token_id", "sep_token_id"),
        "pad_id": said("pad_token_id"),
        "mask_id": said("mask_token_id"),
    }
    for name, pieces in _PIECES.items():
        if found[name] is None:
            found[name] = next((id for piece in pieces if (id := reader.id_of(piece)) is not None), None)
    start = said("decoder_start_token_id", "bos_token_id")
    return {**found, "start_ids": () if start is None else (start,)}


def activation_of(model: nn.Module) -> str | None:
    """The activation's name: as a config says it, or the one kind of module that there is."""
    config = getattr(model, "config", None)
    for name in ("hidden_act", "activation_function", "hidden_activation", "dense_act_fn", "activation"):
        if isinstance(said := getattr(config, name, None), str):
            return said
    kinds = {
        type(one).__name__.lower() for one in model.modules() if type(one).__module__ == "torch.nn.modules.activation"
    }
    kinds -= {"softmax", "multiheadattention", "tanh", "sigmoid"}
    return kinds.pop() if len(kinds) == 1 else None


# Wraps the tokenizer of any library as one of ours.
def as_tokenizer(given: Any, rows: int) -> Tokenizer:
    """A tokenizer of ours from one of ours, of `tokenizers`, of `transformers`, or an object with `encode` and `decode`.

    Args:
        given: None: token ids are typed.
        rows: of the model's table of embeddings.

    Raises:
        CheckpointError: it is none of these.
    """
    if given is None:
        return IdTokenizer(rows)
    if isinstance(given, Tokenizer):
        return given.with_rows(rows)
    if isinstance(given, Backend):
        return Tokenizer(given).with_rows(rows)
    if isinstance(backend := getattr(given, "backend_tokenizer", None), Backend):
        return Tokenizer(backend).with_rows(rows)
    if callable(getattr(given, "encode", None)) and callable(getattr(given, "decode", None)):
        return AnyTokenizer(given, rows)
    raise CheckpointError(
        "{kind} is no tokenizer: give one of tokenizers, one of transformers, or an object with encode(text) -> ids and "
        "decode(ids) -> text.",
        kind=type(given).__name__,
    )
