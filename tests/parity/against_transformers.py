"""A folder opened by `vizformer` held against the same folder opened by `transformers`, number by number."""

from dataclasses import replace
from pathlib import Path

import torch

from tests.checkpoints.folders import TEXTS
from tests.greedy import greedy_steps
from vizformer.checkpoints import Checkpoint, load
from vizformer.model import Trace


def theirs(folder: Path, model: str, dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    import transformers

    opened = getattr(transformers, model).from_pretrained(folder, attn_implementation="eager", dtype=dtype)
    ready: torch.nn.Module = opened.eval()
    return ready


def same_rows(found: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    """|difference| <= tolerance * max(1, |value|), where the value is the largest of its row.

    Both sides compute in float32, and what a number is off by has the size of what was summed in its row: measured against
    the number itself, a small one beside large ones was off by 1.8e-5 with one processor's order of summation, and not
    with another's.
    """
    assert found.shape == expected.shape
    sizes = expected.abs().amax(-1, keepdim=True).clamp(min=1.0)
    difference = (found - expected).abs() / sizes
    assert bool((difference <= tolerance).all()), f"off by {float(difference.max()):.3g} of the row's largest number"


def same_tokens(folder: Path, ours: Checkpoint, texts: tuple[str, ...] = TEXTS) -> None:
    """Token ids of whole texts, special tokens included, and the text they give back."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    for text in texts:
        ids = [token.id for token in ours.encode(text)]
        assert ids == tokenizer(text)["input_ids"], text


def same_numbers(ours: Checkpoint, model: torch.nn.Module, text: str = TEXTS[0], tolerance: float = 1e-5) -> None:
    """Logits (where there is a head), the residual stream before and after every layer, every attention map."""
    if ours.model.config.architecture == "encoder-decoder":
        same_numbers_of_both_stacks(ours, model, text, tolerance=tolerance)
        return
    trace = ours.trace(text)
    (stack,) = trace.tokens
    ids = torch.tensor([[token.id for token in trace.tokens[stack]]])
    with torch.no_grad():
        expected = model(ids, output_attentions=True, output_hidden_states=True)
    if ours.report.has_head:  # type: ignore[attr-defined]
        same_rows(trace.logits, expected.logits[0], tolerance)
    *states, last = expected.hidden_states
    _same_stream(trace, stack, (*states, last), tolerance)
    maps = getattr(expected, "attentions", ())
    if type(model).__name__.startswith("Longformer"):
        maps = tuple(_unrolled(banded) for banded in maps)
    _same_maps(trace, stack, "self", maps, tolerance)


def same_numbers_of_both_stacks(
    ours: Checkpoint, model: torch.nn.Module, text: str, target: str = TEXTS[2], tolerance: float = 1e-5
) -> None:
    """The same of an encoder-decoder, where a target is given, cross-attention included."""
    trace = ours.trace(text, target=target)
    ids = {stack: torch.tensor([[token.id for token in tokens]]) for stack, tokens in trace.tokens.items()}
    with torch.no_grad():
        expected = model(
            ids["encoder"], decoder_input_ids=ids["decoder"], output_attentions=True, output_hidden_states=True
        )
    if ours.report.has_head:  # type: ignore[attr-defined]
        same_rows(trace.logits, expected.logits[0], tolerance)
    _same_stream(trace, "encoder", expected.encoder_hidden_states, tolerance)
    _same_stream(trace, "decoder", expected.decoder_hidden_states, tolerance)
    _same_maps(trace, "encoder", "self", expected.encoder_attentions, tolerance)
    _same_maps(trace, "decoder", "self", expected.decoder_attentions, tolerance)
    _same_maps(trace, "decoder", "cross", expected.cross_attentions, tolerance)


def _same_stream(trace: Trace, stack: str, states: tuple[torch.Tensor, ...], tolerance: float) -> None:
    names = [f"{stack}.{layer}.pre" for layer in range(len(states) - 1)]
    if states[0].dim() == 4:  # several streams beside one another, the batch behind: theirs ends before they become one
        for layer, state in enumerate(states[1:]):
            points = ("post", *(f"stream_{number}" for number in range(1, len(state))))
            found = torch.stack([trace.residual(f"{stack}.{layer}.{point}") for point in points])
            same_rows(found, state[:, 0], tolerance)
        return
    for name, state in zip([*names, f"{stack}.final"], states, strict=True):  # theirs ends after the norm
        same_rows(trace.residual(name), state[0], tolerance)


def _same_maps(trace: Trace, stack: str, kind: str, maps: tuple[torch.Tensor, ...], tolerance: float) -> None:
    sites = [site for site in trace.sites if site.startswith(f"{stack}.") and site.endswith(f".{kind}")]
    for record, of_layer in zip((trace[site] for site in sites), maps, strict=True):
        for head in range(of_layer.shape[1]):
            same_rows(record.pattern(head), of_layer[0, head], tolerance)


def _unrolled(banded: torch.Tensor) -> torch.Tensor:
    """[b, h, n, n] of Longformer's [b, h, n, 2w + 1], whose column c is the key c - w places behind the query."""
    n, reach = banded.shape[2], banded.shape[3] // 2
    padded = torch.nn.functional.pad(torch.zeros(*banded.shape[:3], n), (reach, reach))
    for query in range(n):
        padded[:, :, query, query : query + 2 * reach + 1] = banded[:, :, query]
    return padded[..., reach : reach + n]


def same_translation(
    ours: Checkpoint, model: torch.nn.Module, text: str = TEXTS[0], n: int = 20, **said: object
) -> None:
    """The first `n` tokens of an encoder-decoder, greedy, with the caches of both; no end mark stops either.

    `said` are generation's rules, of which `transformers` is told here and ours read in the files.
    """
    prompt, start = [token.id for token in ours.encode(text)], ours.model.config.start_ids
    options = dict(max_new_tokens=n, min_new_tokens=n, do_sample=False, use_cache=True, eos_token_id=None, **said)
    expected = model.generate(  # type: ignore[operator]
        torch.tensor([prompt]), decoder_start_token_id=start[0], num_beams=1, **options
    )
    unending = type(ours.model)(replace(ours.model.config, eos_id=None)).eval()
    unending.load_state_dict(ours.model.state_dict())
    found = greedy_steps(unending, prompt, start, max_new=n + 1 - len(start))
    assert [*start, *(step.id for step in found)] == expected[0].tolist()


def same_continuation(ours: Checkpoint, model: torch.nn.Module, text: str = TEXTS[0], n: int = 20) -> None:
    """The next `n` tokens, greedy, with the key/value caches of both; the end mark does not stop either."""
    prompt = [token.id for token in ours.encode(text)]
    options = dict(max_new_tokens=n, min_new_tokens=n, do_sample=False, use_cache=True, eos_token_id=None)
    made = model.generate(torch.tensor([prompt]), return_dict_in_generate=True, **options)  # type: ignore[operator]
    expected = made.sequences[0, len(prompt) :].tolist()
    found = greedy_steps(ours.model, prompt, max_new=n)
    ids = [step.id for step in found]
    assert ids == expected[: len(ids)]
    assert len(ids) == n or ids[-1] == ours.model.config.eos_id


def opened_and_same(folder: Path, model: str, tolerance: float = 1e-5) -> Checkpoint:
    """Everything above."""
    ours, other = load(folder), theirs(folder, model)
    same_tokens(folder, ours)
    for text in TEXTS[:3]:
        same_numbers(ours, other, text, tolerance)
    if ours.model.config.architecture == "encoder-decoder" and ours.report.has_head:
        same_translation(ours, other)
    elif ours.model.decoder is not None and ours.report.has_head:
        same_continuation(ours, other)
    return ours
