"""A folder opened by `vizformer` held against the same folder opened by `transformers`, number by number."""

from pathlib import Path

import torch

from tests import tiny
from tests.checkpoints.folders import TEXTS
from vizformer.checkpoints import Checkpoint, load
from vizformer.generation import greedy_steps


def theirs(folder: Path, model: str, dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    import transformers

    opened = getattr(transformers, model).from_pretrained(folder, attn_implementation="eager", dtype=dtype)
    return opened.eval()  # type: ignore[no-any-return]


def same_tokens(folder: Path, ours: Checkpoint, texts: tuple[str, ...] = TEXTS) -> None:
    """Token ids of whole texts, special tokens included, and the text they give back."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    for text in texts:
        ids = [token.id for token in ours.encode(text)]
        assert ids == tokenizer(text)["input_ids"], text


def same_numbers(ours: Checkpoint, model: torch.nn.Module, text: str = TEXTS[0], tolerance: float = 1e-5) -> None:
    """Logits (where there is a head), the residual stream before and after every layer, every attention map."""
    trace = ours.trace(text)
    (stack,) = trace.tokens
    ids = torch.tensor([[token.id for token in trace.tokens[stack]]])
    with torch.no_grad():
        expected = model(ids, output_attentions=True, output_hidden_states=True)
    if ours.report.has_head:  # type: ignore[attr-defined]
        tiny.assert_close(trace.logits, expected.logits[0], tolerance)
    n_layers = len(expected.attentions)
    names = [f"{stack}.{layer}.pre" for layer in range(n_layers)] + [f"{stack}.final"]  # theirs ends after the norm
    for name, state in zip(names, expected.hidden_states, strict=True):
        tiny.assert_close(trace.residual(name), state[0], tolerance)
    for layer, maps in enumerate(expected.attentions):
        record = trace[f"{stack}.{layer}.self"]
        for head in range(maps.shape[1]):
            tiny.assert_close(record.pattern(head), maps[0, head], tolerance)


def same_continuation(ours: Checkpoint, model: torch.nn.Module, text: str = TEXTS[0], n: int = 20) -> None:
    """The next `n` tokens, greedy, with the key/value caches of both; the end mark does not stop either."""
    prompt = [token.id for token in ours.encode(text)]
    options = dict(max_new_tokens=n, min_new_tokens=n, do_sample=False, use_cache=True, eos_token_id=None)
    expected = model.generate(torch.tensor([prompt]), **options)[0, len(prompt) :].tolist()  # type: ignore[operator]
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
    if ours.model.decoder is not None and ours.report.has_head:
        same_continuation(ours, other)
    return ours
