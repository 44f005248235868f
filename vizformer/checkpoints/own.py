"""A model of ours with its tokenizer, and the folder that keeps both: config.json, model.safetensors, tokenizer.json."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch

from vizformer.checkpoints.any_checkpoint import AnyCheckpoint
from vizformer.checkpoints.files.untrusted_folder import Folder, damaged
from vizformer.checkpoints.files.weights import FLOATS, Weights, all_finite, lacks, open_weights, write_weights
from vizformer.checkpoints.tensors.matching import Found, fill
from vizformer.checkpoints.tensors.report import Report, TensorFate, parameters_by_component
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import guarded
from vizformer.checkpoints.tokenizers.special_tokens import as_numbers
from vizformer.checkpoints.tokenizers.vocabularies import SOURCES, read_tokenizer, tried
from vizformer.config import ModelConfig, ModelShape
from vizformer.errors import CheckpointError, TraceError
from vizformer.generation import GREEDY, GenerationStep, Hypothesis, beam_search, stream
from vizformer.model import Edit, Trace, Transformer
from vizformer.model.head_weights import HeadWeights, own_head_weights
from vizformer.model.initialisation import without_memory
from vizformer.text import Token, Tokenizer


@dataclass(frozen=True, eq=False, repr=False)
class Checkpoint(AnyCheckpoint):
    """A loaded model: frozen weights, its tokenizer, its name (`AnyCheckpoint`).

    Raises:
        CheckpointError: a source_tokenizer for a model whose stacks share one table of embeddings.
    """

    name: str
    model: Transformer
    tokenizer: Tokenizer
    source_tokenizer: Tokenizer | None = field(default=None, kw_only=True)
    is_own: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.model.eval().requires_grad_(False)
        rows = self.model.config.source_vocab_size
        if rows is not None:  # a table of its own needs no vocabulary of its own
            source = self.tokenizer if self.source_tokenizer is None else self.source_tokenizer
            object.__setattr__(self, "source_tokenizer", source.with_rows(rows))
        elif self.source_tokenizer is not None:
            raise CheckpointError(
                "{name} has one table of embeddings for both stacks: a tokenizer of its own for the source would "
                "mean other tokens by the same ids. Leave out source_tokenizer.",
                name=self.name,
            )
        object.__setattr__(self, "tokenizer", self.tokenizer.with_rows(self.model.config.vocab_size))

    @property
    def shape(self) -> ModelShape:
        return self.model.config.shape

    @property
    def dtype(self) -> torch.dtype:
        return self.model.embedding.weight.dtype

    @property
    def device(self) -> torch.device:
        return self.model.embedding.weight.device

    @cached_property
    def key(self) -> str:
        """A hash of options, weights and tokenizer."""
        digest = hashlib.blake2b(str(self.model.config).encode(), digest_size=12)
        digest.update(self.tokenizer.to_json().encode() + self.tokenizer.target_json.encode())
        if self.source_tokenizer is not None:
            digest.update(b"source" + self.source_tokenizer.to_json().encode())
        if first_tokens := self.tokenizer_of("encoder").first_tokens:
            digest.update(repr(sorted(first_tokens.items())).encode())
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.cpu().contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def _trace(
        self, read: dict[str, tuple[Token, ...]], edit: Edit | None, heard: Callable[[int], None] | None
    ) -> Trace:
        trace = Trace(tokens=read, assumed=self.assumed, heard=heard)
        ids = [self.tensor(tokens) for tokens in read.values()]
        segments = self.segments(next(iter(read.values()))) if len(read) == 1 else None
        with torch.inference_mode():
            self.model(*ids, segments=segments, trace=trace, edit=edit)
        return _finished(trace)

    def _stream(self, prompt: list[int], beginning: list[int], **options: Any) -> Iterator[GenerationStep]:
        options["sampling"] = options.get("sampling") or GREEDY
        return stream(self.model, *self._first(prompt, beginning), **options)

    def _beam(self, prompt: list[int], beginning: list[int], **options: Any) -> Sequence[Hypothesis]:
        return beam_search(self.model, *self._first(prompt, beginning), **options)

    def _first(self, prompt: list[int], beginning: list[int]) -> tuple[list[int], list[int]]:
        """What the first stack reads, and what the decoder behind it begins with."""
        return (prompt, beginning) if self.model.encoder is not None else (beginning, [])

    def embeddings(self, trace: Trace) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        rows = {}
        for stack, tokens in trace.tokens.items():
            table = self.model.token_table(stack)  # type: ignore[arg-type]
            rows[stack] = table(self.tensor(tokens)).detach().clone(), table.weight.detach()
        return rows

    def logits_of(self, trace: Trace, rows: Mapping[str, torch.Tensor], position: int) -> torch.Tensor:
        model, memory = self.model, None
        first = next(iter(rows))
        ids = {stack: self.tensor(tokens).expand(len(rows[first]), -1) for stack, tokens in trace.tokens.items()}
        segments = self.segments(trace.tokens[first])
        segments = None if segments is None else segments.expand(len(rows[first]), -1)
        x = rows[first]
        if model.encoder is not None:
            run = model.forward_pass("encoder", ids["encoder"])
            x = memory = model.encoder(model.place(rows["encoder"], segments=segments, stack="encoder"), run)
        if model.decoder is not None:
            own = segments if memory is None else None
            run = model.forward_pass("decoder", ids["decoder"], memory=memory)
            x = model.decoder(model.place(rows["decoder"], segments=own, stack="decoder"), run)
        return model.logits(x[:, position])

    def head_weights(self, trace: Trace, site: str) -> HeadWeights:
        return own_head_weights(self.model, trace, site)

    def segments(self, tokens: Sequence[Token]) -> torch.Tensor | None:
        """Which sentence a token belongs to, where the model has segments: a [SEP] in the text begins the next one."""
        config = self.model.config
        if not config.n_segments:
            return None
        ended = [token.id == config.eos_id for token in tokens]
        rows = [[min(sum(ended[:i]), config.n_segments - 1) for i in range(len(tokens))]]
        return torch.tensor(rows, device=self.device)  # [1, n]


def _finished(trace: Trace) -> Trace:
    trace.heard = None
    if trace.edit is not None:
        trace.edit.check(trace.editable())
    elif trace.logits.dtype == torch.float16 and not bool(torch.isfinite(trace.logits).all()):
        raise TraceError(
            "Some numbers of this model grow above 65504, which float16 cannot hold: after that the "
            "results are NaN or infinite. Compute in bfloat16 or float32."
        )
    return trace


# Our own format: a folder with config.json, model.safetensors and tokenizer.json.
#
# tokenizer_of_targets.json is there as well where translations are split otherwise than texts, into the same ids, and
# source_tokenizer.json where texts have a vocabulary of their own; tokenizer.json is then the target's.  A translator of
# both directions says in config.json which token it puts before a text: `"first_tokens": {"CJK": "<2en>", ...}`.

FORMAT = "vizformer-1"
CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
_MOST_NUMBERS = 2**28  # of a table of positions; 2 GB while it is computed
FIRST_TOKENS = "first_tokens"  # in CONFIG
TARGETS = "tokenizer_of_targets.json"  # only where translations are split otherwise than texts


@dataclass(frozen=True)
class Examined:
    """A folder of ours that was understood: everything but the numbers has been read."""

    report: Report
    tokenizer: Tokenizer
    weights: Weights
    source_tokenizer: Tokenizer | None = None


def examine(folder: Folder, raw: dict[str, Any]) -> Examined:
    """Reads what a folder in our format holds; `raw` is its config.json.

    Raises:
        ConfigError: illegal options.
    """
    for name in (CONFIG, WEIGHTS, TOKENIZER):
        if not folder.has(name):
            raise CheckpointError(lacks(folder, name))
    if any(len(str(part)) > 200 for field in raw["model"].items() for part in field):
        raise damaged(CONFIG, "a field is far too long")
    config = ModelConfig.from_dict(raw["model"])
    if config.max_positions * config.d_model > _MOST_NUMBERS:
        raise damaged(CONFIG, f"max_positions={config.max_positions}: a table of them would fill the memory")
    weights = open_weights(folder)
    most = weights.longest_side
    tokenizer, source = _tokenizer(folder, TOKENIZER, config.vocab_size, most), None
    if config.source_vocab_size is not None:
        source = _tokenizer(folder, SOURCES, config.source_vocab_size, most)
    if folder.has(TARGETS):
        tokenizer = tried(tokenizer.with_target(read_tokenizer(folder, TARGETS, most)))
    if FIRST_TOKENS in raw:
        marked = _two_way(source or tokenizer, raw[FIRST_TOKENS])
        tokenizer, source = (marked, None) if source is None else (tokenizer, marked)
    report = Report(
        name=folder.name,
        format="vizformer",
        family="VizFormer",
        declared="",
        config=config,
        has_head=True,
        files=weights.files,
        tensors=tuple(
            TensorFate(name, stored.file, stored.shape, stored.dtype, "used", (name,))
            for name, stored in sorted(weights.tensors.items())
        ),
        parameters=parameters_by_component((name, stored.shape) for name, stored in weights.tensors.items()),
    )
    return Examined(report, tokenizer, weights, source)


def _tokenizer(folder: Folder, name: str, rows: int, most: int) -> Tokenizer:
    """A tokenizer for a table of embeddings with so many rows; no tensor in the file has more than `most`."""
    if not folder.has(name):
        raise CheckpointError(lacks(folder, name))
    tokenizer = tried(as_numbers(guarded(name, lambda: Tokenizer(read_tokenizer(folder, name, most)))))
    if tokenizer.vocab_size > rows:
        raise CheckpointError(
            "{file} has {found} tokens but config.json says {option}={expected}: they belong to different models.",
            file=name,
            found=tokenizer.vocab_size,
            expected=rows,
            option="vocab_size" if name == TOKENIZER else "source_vocab_size",
        )
    return tokenizer


def _two_way(tokenizer: Tokenizer, first_tokens: Any) -> Tokenizer:
    if not isinstance(first_tokens, dict) or not all(isinstance(piece, str) for piece in first_tokens.values()):
        raise damaged(CONFIG, f"{FIRST_TOKENS} must give a token for each script")
    return guarded(CONFIG, lambda: tokenizer.with_first_tokens(first_tokens))


def save_own(checkpoint: Checkpoint, folder: Path, dtype: torch.dtype) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.to(dtype).contiguous() for name, tensor in checkpoint.model.state_dict().items()}
    held: set[int] = set()
    for name, tensor in weights.items():  # several of ours may be one tensor, which a file holds for each
        weights[name] = tensor.clone() if tensor.data_ptr() in held else tensor
        held.add(tensor.data_ptr())
    write_weights(weights, folder / WEIGHTS, {"format": FORMAT})
    options: dict[str, Any] = {"format": FORMAT, "model": checkpoint.model.config.to_dict()}
    if first_tokens := checkpoint.tokenizer_of("encoder").first_tokens:
        options[FIRST_TOKENS] = dict(first_tokens)
    (folder / CONFIG).write_text(json.dumps(options, indent=2) + "\n", encoding="utf-8")
    checkpoint.tokenizer.save(folder / TOKENIZER)
    if checkpoint.source_tokenizer is not None:
        checkpoint.source_tokenizer.save(folder / SOURCES)
    if targets := checkpoint.tokenizer.target_json:
        (folder / TARGETS).write_text(targets, encoding="utf-8")


def build(examined: Examined, dtype: torch.dtype, device: torch.device) -> Transformer:
    """The model with its numbers; on the processor, tensors that are stored in `dtype` stay mapped to the file."""
    weights, config = examined.weights, examined.report.config
    assert config is not None
    model = _empty_model(config, len(weights.tensors))
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    stored_shapes = {name: stored.shape for name, stored in weights.tensors.items()}
    if expected != stored_shapes:
        wrong = sorted(set(expected) ^ set(stored_shapes)) or sorted(
            n for n in expected if expected[n] != stored_shapes[n]
        )
        raise CheckpointError(
            "{file} does not fit config.json: {n} tensors differ, the first is {name!r}. They belong to different "
            "models.",
            file=WEIGHTS,
            n=len(wrong),
            name=wrong[0][:80],
        )
    used = [(Part(name, (name,)), Found(name, stored)) for name, stored in weights.tensors.items()]
    for __, tensor in used:
        if tensor.stored.dtype not in FLOATS or not all_finite(tensor.read()):
            raise damaged(WEIGHTS, f"{tensor.name!r} holds what is no finite number")
    shapes = {name: stored.shape for name, stored in weights.tensors.items()}
    try:
        fill(model, used, shapes, {}, dtype, device)
    except RuntimeError as error:
        raise damaged(CONFIG, error) from error  # more positions than fit into memory
    return model


def _empty_model(config: ModelConfig, n_tensors: int) -> Transformer:
    """The model without memory for its weights, unless the config asks for what no file of `n_tensors` can fill."""
    n_layers = config.depth
    if n_layers > n_tensors:
        raise damaged(CONFIG, f"{n_layers} layers, but {WEIGHTS} has {n_tensors} tensors")
    try:
        with without_memory():
            return Transformer(config)
    except (RuntimeError, TypeError) as error:  # sizes that no tensor can have
        raise damaged(CONFIG, error) from error
