"""Whether a folder's model does the same here as in `transformers`, where that package is installed.

`transformers` is no dependency: it is asked for nothing else.
"""

import importlib.util
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from vizformer.checkpoints.files.untrusted_folder import first_line
from vizformer.checkpoints.opening import Opened, load
from vizformer.checkpoints.tensors.memory import require
from vizformer.checkpoints.tensors.placement import DTYPES, name_of
from vizformer.errors import CheckpointError, VizformerError
from vizformer.jobs.worker import environment, take_low_priority
from vizformer.model import Trace

TOLERANCE = 1e-5
_APART = f"import sys; from {__name__} import main; main(*sys.argv[1:])"
LOOK = 0.05  # seconds between two looks at a comparison in a process of its own
ROUNDINGS = 32  # units in the last place of half precision: both round many times in every layer, at other places


@dataclass(frozen=True)
class Agreement:
    """How far apart the two are, for one text: the largest |ours - theirs| / max(1, |theirs|, size of its row).

    The size of a row is its root mean square: both round sums of such numbers.  In bfloat16 and float16 32 units in the
    last place are allowed, 32 eps.
    """

    tokens: int
    stream: float  # of the residual stream, before every layer and at the end
    maps: float  # of all attention maps
    logits: float | None  # of the logits; None where the weights have no head
    version: str
    dtype: str = "float32"

    @property
    def tolerance(self) -> float:
        dtype = DTYPES[self.dtype]
        return ROUNDINGS * torch.finfo(dtype).eps if dtype.itemsize < 4 else TOLERANCE

    @property
    def units(self) -> int:
        """In the last place, that are allowed."""
        return round(self.tolerance / torch.finfo(DTYPES[self.dtype]).eps)

    @property
    def largest(self) -> float:
        return max(self.stream, self.maps, self.logits or 0.0)

    @property
    def holds(self) -> bool:
        return self.largest <= self.tolerance


def is_possible() -> bool:
    """Whether `transformers` is installed; it is not imported for the question."""
    return importlib.util.find_spec("transformers") is not None


def agreement(ours: Opened, folder: Path, text: str) -> Agreement:
    """Runs a text through both, in the precision of `ours` and where it is, with eager attention.

    Raises:
        DoesNotFitError: there is no memory for a second copy.
        CheckpointError: `transformers` is not installed or does not open the folder; not a folder in its layout.
        VizformerError: as `Checkpoint.trace`.
    """
    if not is_possible() or ours.report.format != "hugging-face":
        raise CheckpointError("Compared are folders in Hugging Face layout, where transformers is installed.")
    require(ours.report, ours.dtype, ours.device, maps=False)
    import transformers

    trace = ours.trace(text)
    ids = {stack: ours.tensor(tokens) for stack, tokens in trace.tokens.items()}
    kind = ours.report.declared if ours.report.has_head and ours.report.declared else "AutoModel"
    try:
        theirs = (
            getattr(transformers, kind)
            .from_pretrained(folder, attn_implementation="eager", dtype=ours.dtype, local_files_only=True)
            .to(ours.device)
        )
    except Exception as error:  # whatever another package may raise about a folder
        raise CheckpointError(
            "transformers {version} does not open this folder: {reason}",
            version=transformers.__version__,
            reason=first_line(error),
        ) from error
    given = dict(output_attentions=True, output_hidden_states=True)
    with torch.inference_mode():
        if len(ids) == 2:
            out = theirs.eval()(ids["encoder"], decoder_input_ids=ids["decoder"], **given)
            states = [("encoder", out.encoder_hidden_states), ("decoder", out.decoder_hidden_states)]
            maps = [
                ("encoder", "self", out.encoder_attentions),
                ("decoder", "self", out.decoder_attentions),
                ("decoder", "cross", out.cross_attentions),
            ]
        else:
            (stack,) = ids
            out = theirs.eval()(ids[stack], **given)
            states, maps = [(stack, out.hidden_states)], [(stack, "self", out.attentions)]
    return Agreement(
        tokens=sum(row.shape[1] for row in ids.values()),
        stream=max(_stream(trace, stack, found) for stack, found in states),
        maps=max(_maps(trace, stack, kind, found) for stack, kind, found in maps),
        logits=_apart(trace.logits, out.logits[0]) if ours.report.has_head else None,
        version=transformers.__version__,
        dtype=name_of(ours.dtype),
    )


def agreement_apart(folder: Path, dtype: str, device: str, text: str, goes_on: Callable[[], bool]) -> Agreement:
    """`agreement` of a folder, in a process of its own at low priority: importing transformers alone would hold up every
    other thread of this one for seconds.

    Args:
        goes_on: asked several times a second; while it says no, the process rests (where the system can stop one); what it
            raises ends it.

    Raises:
        VizformerError: as `agreement`; or the process ended without a word.
    """
    with subprocess.Popen(
        [sys.executable, "-c", _APART, str(folder), dtype, device],
        env=environment(OMP_NUM_THREADS="1"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        given: bytes | None = text.encode()
        told: bytes | None = None
        rests = False
        try:
            while told is None:
                try:
                    told, __ = process.communicate(given, timeout=LOOK)
                except subprocess.TimeoutExpired:
                    given = None  # (which is on its way)
                    if rests == goes_on() and hasattr(signal, "SIGSTOP"):
                        rests = not rests
                        process.send_signal(signal.SIGSTOP if rests else signal.SIGCONT)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise CheckpointError(
            "The comparison with transformers ended early (exit status {status}); there may be too little memory for two "
            "copies of the model. Try again, or with a smaller one.",
            status=process.returncode,
        )
    found = pickle.loads(told)  # (of our own process)
    if isinstance(found, Agreement):
        return found
    raise CheckpointError(found)


def main(folder: str, dtype: str, device: str) -> None:
    """Compares for the text on stdin, and writes an `Agreement`, or the message of what went wrong, to stdout."""
    take_low_priority()
    torch.set_num_threads(1)
    text, out = sys.stdin.buffer.read().decode(), os.dup(1)
    os.dup2(2, 1)  # whatever else is printed
    try:
        found: object = agreement(load(folder, dtype=dtype, device=device), Path(folder), text)
    except VizformerError as error:
        found = error.message
    with os.fdopen(out, "wb") as file:
        pickle.dump(found, file)


def _stream(trace: Trace, stack: str, states: tuple[Tensor, ...]) -> float:
    """Theirs are the inputs of the layers and, last, what leaves the final norm."""
    if states[0].dim() == 4:  # [s, 1, n, d_model]: several streams, here the first behind each layer
        names = [f"{stack}.{layer}.post" for layer in range(len(states) - 1)]
        return max(_apart(trace.residual(name), state[0, 0]) for name, state in zip(names, states[1:], strict=True))
    names = [*(f"{stack}.{layer}.pre" for layer in range(len(states) - 1)), f"{stack}.final"]
    return max(_apart(trace.residual(name), state[0]) for name, state in zip(names, states, strict=True))


def _maps(trace: Trace, stack: str, kind: str, maps: tuple[Tensor, ...]) -> float:
    records = [trace[site] for site in trace.sites if site.startswith(f"{stack}.") and site.endswith(f".{kind}")]
    return max(
        (
            _apart(record.pattern(head), of_layer[0, head])
            for record, of_layer in zip(records, maps, strict=True)
            for head in range(of_layer.shape[1])
        ),
        default=0.0,
    )


def _apart(ours: Tensor, theirs: Tensor) -> float:
    ours, theirs = ours.double(), theirs.double()
    row = theirs.square().mean(-1, keepdim=True).sqrt()
    scale = torch.maximum(theirs.abs().clamp(min=1), row)
    return float(((ours - theirs).abs() / scale).max())
