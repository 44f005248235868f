"""A folder whose model is not computed by our own Transformer: the code of `transformers` computes it, and is recorded.

What config.json says is bounded and stripped first (`said_by_config`), before `transformers` is imported.  Then the model is
made twice by its `from_pretrained`, which is given a config and tensors, and no name or path, so that it has nothing to look
up: once with tensors that have shapes and no numbers, which shows what is missing, left over or of another shape; then with
those of the file.
"""

import math
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from vizformer.checkpoints.files.finding import find_weights
from vizformer.checkpoints.files.untrusted_folder import MEGABYTE, Folder, first_line, listed, shown
from vizformer.checkpoints.files.weights import FLOATS, SAFETENSORS, Stored, Weights, all_finite
from vizformer.checkpoints.hugging_face.families import BY_TYPE
from vizformer.checkpoints.hugging_face.folder_tokenizers import read_vocabularies, with_rows
from vizformer.checkpoints.hugging_face.model_folder import NotOursError, misfit
from vizformer.checkpoints.hugging_face.said_by_config import never_read, said_by
from vizformer.checkpoints.hugging_face.text_part import INSIDE, language_model, left_aside, without_tower
from vizformer.checkpoints.hugging_face.unsupported_models import BECAUSE
from vizformer.checkpoints.recorded.wrapping import (
    MAX_POSITIONS,
    activation_of,
    longest_text,
    marks_of,
    rows_read,
)
from vizformer.checkpoints.tensors.matching import Found, not_tied, of_no_part, quantised, wrong_shape
from vizformer.checkpoints.tensors.memory import place
from vizformer.checkpoints.tensors.report import NO_HEAD, Fate, Report, TensorFate
from vizformer.checkpoints.tokenizers.classes import by_class_alone
from vizformer.config import ModelShape
from vizformer.errors import CheckpointError, VizformerError
from vizformer.messages import N_, Message
from vizformer.recorder.recorder import blocks_of
from vizformer.text import IdTokenizer, Tokenizer

CONFIG = "config.json"
INSTALL = 'pip install "vizformer[transformers]"'
_MOST_BYTES = 96 * MEGABYTE  # of tables that are computed from the options while a model is made, together
_MOST_SECONDS = 6.0  # of the processor, in which the model of a file with very many tensors is made
_ATTENTION = "eager"
"""The plain products and softmax, set once: the fused call leaves out what some models do to their scores (caps, sinks)."""
_lock = threading.Lock()  # making a model changes things of the whole process


@dataclass(frozen=True)
class Examined:
    """A folder that was understood; its numbers have not been read."""

    report: Report
    tokenizer: Tokenizer
    tensors: Mapping[str, Stored]  # those that are used
    config: Any  # of `transformers`
    class_name: str
    source_tokenizer: None = None
    refused: NotOursError | None = None  # why our own Transformer, of whose families it is, does not open it


def examine(folder: Folder, raw: Mapping[str, Any], refused: NotOursError | None = None) -> Examined:
    """Reads what a folder holds, and makes the model of it without numbers; what is wrong with its tensors stands in the
    report.

    Args:
        refused: what our own Transformer does not have, of a family of ours.

    Raises:
        CheckpointError: `transformers` is not installed or does not know the type; what config.json says is refused, or
            not read where it is why our own Transformer does not open it; the tensors are no safetensors, or no model can be
            made.
    """
    whole, raw = raw, _of_texts(raw)
    weights = find_weights(folder)
    if strange := [name for name in weights.files if not name.endswith(".safetensors")]:
        raise CheckpointError(
            "{file}: models that `transformers` computes are opened from {usual} alone. Open the model with the "
            "`transformers` library and write it again with save_pretrained.",
            file=shown(strange[0]),
            usual=SAFETENSORS,
        )
    said = said_by(raw, weights)
    if said.problems:
        raise _refused(list(said.problems))
    class_name, has_head = class_of(raw)
    if refused is not None and (passed_over := never_read(getattr(_library(), class_name), refused.fields, raw)):
        raise CheckpointError(
            "Nor does the code of `transformers` {version}, {class_name}, read {fields}. Take a model without that.",
            version=_library().__version__,
            class_name=class_name,
            fields=", ".join(map(shown, passed_over)),
        )
    ours = BY_TYPE.get(str(raw["model_type"]))
    vocabularies = read_vocabularies(folder, by_class_alone if ours is None else ours.tokenizer, weights.longest_side)
    tensors, aside, beside = _of_the_model(weights, class_name, has_head, str(whole["model_type"]))
    with _lock, _quietly():
        config = _config(str(raw["model_type"]), said.fields)
        unread = {name: _Unread(name, stored) for name, stored in tensors.items()}
        model, problems = _made(class_name, config, unread)
        rows = rows_read(model)
    problems += [problem for one in unread.values() for problem in one.problems]
    start = _said(config, "decoder_start_token_id")
    if isinstance(start, int) and start >= max(rows, _rows_predicted(model)):
        said_as = N_("it must be a token id, 0 to {last}", last=rows - 1)
        raise _refused(
            [N_("{field}={value}: {rule}", field="decoder_start_token_id", value=shown(start), rule=said_as)]
        )
    if model.main_input_name != "input_ids" or not rows:
        raise _refused(
            [N_("{kind} reads {what}, and no token ids", kind=class_name, what=shown(model.main_input_name))]
        )
    notes = [_recorded(raw, class_name, refused), *said.notes, *weights.notes, *beside]
    if not has_head:
        notes.append(NO_HEAD)
    tokenizer: Tokenizer = IdTokenizer(rows)
    if vocabularies is None:
        notes.append(
            N_("there is no tokenizer: numbers separated by spaces are read as token ids, 0 to {last}", last=rows - 1)
        )
    else:
        tokenizer = with_rows(vocabularies.texts, rows)
        notes += vocabularies.notes
    report = Report(
        name=folder.name,
        format="transformers",
        family=re.sub(r"(For[A-Z]\w*|LMHeadModel|Model)$", "", class_name),
        declared=class_name,
        config=None,
        has_head=has_head,
        files=weights.files,
        tensors=tuple(_fate(name, stored, aside.get(name)) for name, stored in weights.tensors.items()),
        parameters=_components(model),
        assumptions=tuple(notes),
        problems=tuple(problems),
        recorded_shape=_declared_shape(model, tokenizer, rows),
        buffers=sum(x.nbytes for _, x in model.named_buffers()),
    )
    return Examined(report, tokenizer, tensors, config, class_name, refused=refused)


def _recorded(raw: Mapping[str, Any], class_name: str, refused: NotOursError | None) -> Message:
    kind = str(raw["model_type"])
    if refused is not None:
        return N_(
            "VizFormer's own arithmetic for {kind} lacks what config.json asks for ({lacking}): its code in `transformers`, "
            "{class_name}, computes it and is recorded",
            kind=shown(kind),
            lacking=refused.problems,
            class_name=class_name,
        )
    if kind in BECAUSE:
        return N_(
            "VizFormer has no arithmetic of its own for {kind} ({why}): its code in `transformers`, {class_name}, computes "
            "it and is recorded",
            kind=shown(kind),
            why=BECAUSE[kind],
            class_name=class_name,
        )
    return N_(
        "VizFormer has no arithmetic of its own for {kind}: its code in `transformers`, {class_name}, computes it and is "
        "recorded",
        kind=shown(kind),
        class_name=class_name,
    )


def _fate(name: str, stored: Stored, aside: Message | None) -> TensorFate:
    fate: Fate = "used" if aside is None else "unused"
    return TensorFate(name, stored.file, stored.shape, stored.dtype, fate, note=aside, reordered=stored.copied)


_PARTS = {
    "attention": r"attn|attention",
    "norms": r"norm|(^|\.)ln_?",
    "feed-forward": r"mlp|expert|feed_forward|ffn|fc\d|dense|ff\.|wi|wo",
    "position embedding": r"position|wpe",
    "token embedding": r"embed|wte|shared",
    "head": r"head",
}


def _components(model: nn.Module) -> dict[str, int]:
    """Numbers per component, by the names of the modules."""
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        module = name.rpartition(".")[0]
        last = module.rpartition(".")[2]
        found = (part for text in (last, module) for part, words in _PARTS.items() if re.search(words, text))
        counts[next(found, "other")] += parameter.numel()
    return dict(counts)


def _declared_shape(model: Any, tokenizer: Tokenizer, rows: int) -> ModelShape:
    """The sizes as far as they are known before the model has run."""
    config = model.config.get_text_config(decoder=True)
    depths = list(Counter(stack for stack, _ in blocks_of(model).values()).values()) or [1]
    heads, width = (_said(config, name) for name in ("num_attention_heads", "hidden_size"))
    heads = heads if isinstance(heads, int) and heads > 0 else 1
    width = width if isinstance(width, int) else model.get_input_embeddings().weight.shape[-1]
    heads_say = [_said(config, name) for name in ("qk_head_dim", "head_dim")]
    head = next((one for one in heads_say if isinstance(one, int)), max(1, width // heads))
    kinds = ["decoder"]
    if model.config.is_encoder_decoder and len(depths) > 1:
        kinds = ["encoder", "decoder"]
    elif not model.can_generate():
        kinds = ["encoder"]
    layers = dict(zip(kinds, depths, strict=False))
    behind = layers.get("decoder", 0) if len(kinds) > 1 else 0
    return ModelShape(
        encoder_heads=(heads,) * layers.get("encoder", 0),
        decoder_heads=(heads,) * layers.get("decoder", 0),
        cross_heads=(heads,) * behind,
        d_model=width,
        d_head=head,
        vocab_size=_rows_predicted(model) or rows,
        input_vocab_size=rows,
        max_positions=longest_text(model, None) or MAX_POSITIONS,
        activation=activation_of(model),
        **marks_of(model, None, tokenizer, rows),
    )


def _said(config: Any, name: str) -> Any:
    """A field; None where there is none, or where it is another one in each layer, which is an error there."""
    with suppress(AttributeError, RuntimeError):
        return getattr(config, name)
    return None


def _rows_predicted(model: Any) -> int:
    weight = getattr(model.get_output_embeddings(), "weight", None)
    return len(weight) if isinstance(weight, Tensor) else 0


def build(examined: Examined, dtype: torch.dtype, device: torch.device) -> nn.Module:
    """The model with its numbers; on the processor, tensors that are stored in `dtype` stay mapped to the file.

    Raises:
        CheckpointError: tensors that do not fit; numbers that are none.
    """
    problems = list(examined.report.problems)
    if not problems:
        problems = wrong_numbers(examined)
    if problems:
        raise misfit(next(iter(examined.report.files)), problems)
    with _lock, _quietly():
        read = {name: _Read(Found(name, stored), dtype, device) for name, stored in examined.tensors.items()}
        model, problems = _made(examined.class_name, examined.config, read)
    if problems := problems or _untied(model):
        raise misfit(next(iter(examined.report.files)), problems)
    made: nn.Module = model.to(device)
    for one in made.parameters():
        if one.is_floating_point():  # those of no file too, which are computed from the options (Marian's positions)
            one.data = one.data.to(dtype)
    return made.eval().requires_grad_(False)


def wrong_numbers(examined: Examined) -> list[Message]:
    """What is wrong with the numbers themselves: every tensor is read once for it."""
    return [
        N_("{name} holds NaN or infinite numbers", name=shown(name))
        for name, stored in examined.tensors.items()
        if stored.dtype in FLOATS and not all_finite(Found(name, stored).read())
    ]


@contextmanager
def first_run(examined: Examined) -> Iterator[None]:
    """Bounds the run of a few tokens that finds out what a model is.

    Raises:
        CheckpointError: it takes much longer than its weights would.
    """
    with _as_refusal(), _Bounds(1.5 + 1e-9 * examined.report.n_parameters, math.inf):
        yield


def _untied(model: Any) -> list[Message]:
    """Tensors that the class holds to be one, and the file has twice with other numbers."""
    pairs = model.get_expanded_tied_weights_keys(all_submodels=True)
    return [
        not_tied(second, first)
        for first, second in pairs.items()
        if model.get_parameter(first) is not model.get_parameter(second)
    ]


# --- what is made ---


_TASKS = ("CAUSAL_LM", "MASKED_LM", "SEQ_TO_SEQ_CAUSAL_LM", "TEXT_ENCODING")  # of texts


def opens(raw: Mapping[str, Any]) -> bool:
    """Whether `transformers` computes what a config.json says: its type is on our list, or the installed one knows it."""
    kind, said = raw.get("model_type"), raw.get("architectures")
    if not isinstance(kind, str):
        return False
    if kind in INSIDE:
        try:
            inner = _of_texts(raw)
        except CheckpointError:
            return False
        return opens(inner) and knows(inner["model_type"])
    if kind in BY_TYPE:
        return False
    if kind in BECAUSE:
        return True
    declared = said[0] if isinstance(said, list) and said and isinstance(said[0], str) else ""
    return find_spec("transformers") is not None and (knows(kind) or _of_another_type(kind, declared))


def class_of(raw: Mapping[str, Any]) -> tuple[str, bool]:
    """The class of `transformers` that computes what a config.json says, and whether it predicts tokens."""
    auto = _library().models.auto.modeling_auto
    said_kind = raw.get("model_type")
    kind = said_kind if isinstance(said_kind, str) else ""
    said = raw.get("architectures")
    declared = said[0] if isinstance(said, list) and said and isinstance(said[0], str) else ""
    if _of_another_type(kind, declared):
        return declared, True
    with_head = [
        name
        for table in ("CAUSAL_LM", "MASKED_LM", "SEQ_TO_SEQ_CAUSAL_LM", "PRETRAINING")
        for name in _names(getattr(auto, f"MODEL_FOR_{table}_MAPPING_NAMES").get(kind))
    ]
    without = [
        *_names(auto.MODEL_MAPPING_NAMES.get(kind)),
        *_names(auto.MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES.get(kind)),
    ]
    if not knows(kind):
        raise CheckpointError(
            "{file} says model_type={kind}, which `transformers` {version} does not know as a model of texts{why}. Take a "
            "model of a type that it knows, or install a newer version of it.",
            file=CONFIG,
            why=N_(" ({why})", why=BECAUSE[kind]) if kind in BECAUSE else "",
            kind=shown(said_kind),
            version=_library().__version__,
        )
    if declared in with_head:
        return declared, True
    if declared in without:
        return declared, False
    usual = list(dict.fromkeys(with_head))
    if not declared and len(usual) == 1:
        return usual[0], True
    if re.search(r"For(Sequence|Token)Classification$|ForQuestionAnswering$|ForMultipleChoice$", declared) and without:
        return without[0], False
    raise CheckpointError(
        "{file} says architectures={declared}, which VizFormer does not open for model_type={kind}. It "
        "opens: {classes}. Take a model of one of these classes, or correct the field.",
        file=CONFIG,
        declared=shown(said),
        kind=shown(kind),
        classes=", ".join([*usual, *without]),
    )


def _of_another_type(kind: str, declared: str) -> bool:
    """Whether a class of texts is that of a type inside another one, such as the decoder of a model that writes music."""
    tables = (getattr(_library().models.auto.modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES") for task in _TASKS)
    if knows(kind) or not any(declared in _names(found) for table in tables for found in table.values()):
        return False
    return getattr(getattr(_library(), declared).config_class, "model_type", None) == kind


def knows(kind: str) -> bool:
    """Whether the installed `transformers` has a model of texts of this type."""
    auto = _library().models.auto.modeling_auto
    return any(kind in getattr(auto, f"MODEL_FOR_{task}_MAPPING_NAMES") for task in _TASKS)


def _names(found: Any) -> list[str]:
    return [] if found is None else [found] if isinstance(found, str) else list(found)


def _config(kind: str, fields: Mapping[str, Any]) -> Any:
    library = _library()
    methods = {
        name for name in dir(library.PreTrainedConfig) if callable(getattr(library.PreTrainedConfig, name, None))
    }
    if strange := sorted(name for name in _all_names(fields) if name in methods):
        raise _refused([N_("{field} is no name of a field", field=shown(name)) for name in strange])
    with _as_refusal():
        cls = library.CONFIG_MAPPING[kind]
        config = cls(**{name: value for name, value in fields.items() if name != "model_type" and name.isidentifier()})
        config._attn_implementation = _ATTENTION
        return config


def _all_names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _all_names(one)


def _made(class_name: str, config: Any, tensors: Mapping[str, Any]) -> tuple[Any, list[Message]]:
    """The model, and what is wrong with the tensors that it was handed."""
    with _as_refusal(tensors), _Bounds(min(1.5 + 5e-4 * len(tensors), _MOST_SECONDS)):
        model, found = getattr(_library(), class_name).from_pretrained(
            None,
            config=config,
            state_dict=tensors,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            trust_remote_code=False,
            local_files_only=True,
            use_safetensors=True,
        )
    shapes = {name: (tuple(found), tuple(needed)) for name, found, needed in found["mismatched_keys"]}
    problems = [
        N_("{name} is missing", name=shown(name)) for name in sorted(found["missing_keys"]) if name not in shapes
    ]
    problems += [wrong_shape(name, has, needed, CONFIG) for name, (has, needed) in sorted(shapes.items())]
    problems += [of_no_part(name, CONFIG) for name in sorted(found["unexpected_keys"])]
    return model, problems


class _Unread:
    """A tensor of the file with its shape and without its numbers, as `from_pretrained` takes one from a slice."""

    def __init__(self, name: str, stored: Stored) -> None:
        self.name, self.stored, self.shape = name, stored, stored.shape
        self.problems: list[Message] = []

    def __getitem__(self, all_of_it: object) -> "_Unread":
        return self

    def to(self, device: object = None, dtype: torch.dtype | None = None) -> Tensor:
        wanted = dtype or torch.float32
        if (self.stored.dtype in FLOATS) != wanted.is_floating_point:
            self.problems.append(quantised(self.name, self.stored))
        return torch.empty(self.stored.shape, dtype=wanted, device="meta")


class _Read:
    """A tensor of the file that is read when `from_pretrained` asks for it, where and as the model computes."""

    def __init__(self, found: Found, dtype: torch.dtype, device: torch.device) -> None:
        self.found, self.dtype, self.device, self.shape = found, dtype, device, found.stored.shape

    def __getitem__(self, all_of_it: object) -> "_Read":
        return self

    def to(self, device: object = None, dtype: torch.dtype | None = None) -> Tensor:
        whole = dtype is not None and not dtype.is_floating_point
        return place(self.found.read(), dtype if whole and dtype else self.dtype, self.device, self.found.name)


class _TooMuchError(Exception):
    pass


_NAMES = """
arange empty empty_like eye full full_like linspace logspace ones ones_like outer rand randint randn tensor tril triu zeros
zeros_like
"""
_MAKERS = {getattr(torch, name) for name in _NAMES.split()}


class _Bounds(TorchFunctionMode):
    """Bounds what is made by this thread: bytes of tables that are computed, and time."""

    def __init__(self, seconds: float, most: float = _MOST_BYTES) -> None:
        super().__init__()
        self.bytes, self.most, self.end = 0, most, time.thread_time() + seconds

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", "") == nn.init.__name__:
            x = args[0] if args else kwargs["tensor"]
            if x.is_meta:
                return x
        out = func(*args, **kwargs)
        if func in _MAKERS and not out.is_meta:
            self.bytes += out.nbytes
        if self.bytes > self.most or time.thread_time() > self.end:
            raise _TooMuchError("more memory or time than a model of these weights takes")
        return out


# --- the library ---


def _library() -> Any:
    """`transformers`, imported when it is first needed; kernels of a hub are switched off before."""
    os.environ.setdefault("USE_HUB_KERNELS", "0")
    try:
        import transformers
        import transformers.models.auto.modeling_auto
    except ImportError as error:
        raise CheckpointError(
            "This model is computed by the code of `transformers`, which is not installed here ({reason}): {install}. Or "
            "take a model of a family that VizFormer computes itself (docs/reference.md).",
            reason=first_line(error),
            install=INSTALL,
        ) from error
    if int(transformers.__version__.partition(".")[0]) != 5:
        raise CheckpointError(
            "This model is computed by the code of `transformers` 5; version {version} is installed. {install}",
            version=transformers.__version__,
            install=INSTALL,
        )
    return transformers


@contextmanager
def _quietly() -> Iterator[None]:
    """Silences the logging and the progress bars of `transformers`."""
    logging = _library().utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def _as_refusal(tensors: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Whatever the code of `transformers` raises about a config, or about `tensors`, as an error of ours."""
    try:
        yield
    except VizformerError:
        raise
    except Exception as error:  # of any kind, by what the config says
        if isinstance(error, MemoryError | _TooMuchError) or "allocate memory" in str(error):
            raise CheckpointError(
                "{file} does not fit the weights: a model of the sizes that it gives would need much "
                "more memory or time than these weights. Copy both again from the model's source.",
                file=CONFIG,
            ) from error
        if "conversion" in str(error) and (odd := _odd({name: one.shape for name, one in (tensors or {}).items()})):
            raise misfit(SAFETENSORS, odd) from error
        raise CheckpointError(
            "{file} describes a model that `transformers` cannot build ({kind}: {reason}). Copy it again "
            "from the model's source.",
            file=CONFIG,
            kind=type(error).__name__,
            reason=first_line(error),
        ) from error


_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")  # of a layer or an expert


def _odd(shapes: Mapping[str, tuple[int, ...]]) -> list[Message]:
    """Tensors, of those that differ in numbers in their names alone, that are absent or have another shape than most.

    Where tensors are put together, `transformers` says that it failed and not at which.
    """
    kinds: dict[str, dict[tuple[str, ...], str]] = {}  # a name with # for numbers -> these -> the name
    groups: dict[str, set[tuple[str, ...]]] = {}  # what such a tensor is a part of, as an expert -> the numbers of all
    for name in shapes:
        kind, place = _NUMBER.sub("#", name), tuple(_NUMBER.findall(name))
        kinds.setdefault(kind, {})[place] = name
        groups.setdefault(kind[: kind.rfind("#") + 1], set()).add(place)
    problems = []
    for kind, names in kinds.items():
        for place in sorted(groups[kind[: kind.rfind("#") + 1]] - names.keys()):
            parts = [part for pair in zip(kind.split("#"), (*place, ""), strict=True) for part in pair]
            problems.append(N_("{name} is missing", name=shown("".join(parts))))
        usual, first = Counter(shapes[name] for name in names.values()).most_common(1)[0][0], next(iter(names.values()))
        problems += [
            wrong_shape(name, shapes[name], usual, shown(first)) for name in names.values() if shapes[name] != usual
        ]
    return problems


def _refused(problems: list[Message]) -> CheckpointError:
    return CheckpointError(
        "{file} asks for what VizFormer does not support: {problems}. Copy it again from the model's source, or take "
        "another model.",
        file=CONFIG,
        problems=listed(problems),
    )


def _of_texts(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of the language model in a multimodal config, without the class name of the whole model."""
    if raw.get("model_type") not in INSIDE:
        return raw
    return {name: value for name, value in language_model(raw).items() if name != "architectures"}


def _of_the_model(
    weights: Weights, class_name: str, has_head: bool, kind: str
) -> tuple[dict[str, Stored], dict[str, Message], list[Message]]:
    """The tensors, why those are left aside that are of another part or the head of another task, and what is to note."""
    if kind in INSIDE:
        tensors, aside, names = without_tower(weights)
        return tensors, aside, [left_aside(kind, names, weights)]
    prefix = f"{getattr(_library(), class_name).base_model_prefix}."
    inside = {name: stored for name, stored in weights.tensors.items() if name.startswith(prefix)}
    if has_head or not inside:
        return dict(weights.tensors), {}, []
    note = N_("outside the model itself: the head of another task")
    return inside, {name: note for name in weights.tensors if name not in inside}, []
