"""Every family in bfloat16 and float16 against `transformers` eager in the same precision; generation with the cache.

Both round after every operation, but not after the same ones (a fused kernel keeps scores and weights in float32, an
RMSNorm of theirs rounds before it scales), so that they part by a unit in the last place here and there, and layer by
layer these add up: 32 units in the last place are allowed, of a number's size or that of its row.  A wrong operation
shows as a difference of the size of the numbers themselves, which is tested too.
"""

import pytest
import torch

from tests.checkpoints import folders as made
from tests.greedy import greedy_steps
from tests.parity.against_transformers import theirs
from vizformer.checkpoints import load
from vizformer.checkpoints.agreement_check import ROUNDINGS, agreement
from vizformer.generation import stream

pytest.importorskip("transformers")
FAMILIES = (
    "gpt2",
    "bert",
    "roberta",
    "distilbert",
    "llama",
    "qwen2",
    "qwen3",
    "opt",
    "t5",
    "bart",
    "marian",
)
TEXT = "The cats are here, and two dogs"
each = pytest.mark.parametrize("dtype", ["bfloat16", "float16"])


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("half")
    for name in FAMILIES:
        getattr(made, name)(root / name)
    return root


@pytest.mark.sample(3)
@each
@pytest.mark.parametrize("name", FAMILIES)
def test_the_same_numbers_as_transformers_in_the_same_precision(root, name, dtype):
    found = agreement(load(root / name, dtype=dtype), root / name, TEXT)
    assert found.dtype == dtype
    assert found.holds, found
    eps = torch.finfo(getattr(torch, dtype)).eps
    assert found.tolerance == ROUNDINGS * eps
    assert found.largest > 1e-5  # it is not float32 that was compared


@each
@pytest.mark.parametrize("name", ["llama", "bert", "marian"])
@pytest.mark.sample(2)
def test_a_difference_is_seen(root, name, dtype):
    opened = load(root / name, dtype=dtype)
    stack = opened.model.decoder or opened.model.encoder
    with torch.no_grad():
        stack.layers[1].self_attention.W_V.weight.mul_(-1)
    assert not agreement(opened, root / name, TEXT).holds


@pytest.mark.sample(3)
@each
@pytest.mark.parametrize("name", [name for name in FAMILIES if "bert" not in name])
def test_generation_with_the_cache_is_generation_without(root, name, dtype):
    """Where the two differ, the logits of the two tokens were apart by no more than a rounding or two."""
    opened = load(root / name, dtype=dtype)
    model, config = opened.model, opened.model.config
    both = config.architecture == "encoder-decoder"
    prompt, beginning = ([token.id for token in tokens] for tokens in opened.opening(TEXT))
    first, prefix = (prompt, beginning) if both else (beginning, [])
    ids = [step.id for step in greedy_steps(model, first, prefix, max_new=12)]
    eps = torch.finfo(getattr(torch, dtype)).eps
    with torch.inference_mode():
        decoder = torch.tensor([[*(prefix if both else first), *ids]])
        memory = model.encode(torch.tensor([first])) if both else None
        logits = model.logits(model.decode(decoder, memory))[0, -len(ids) - 1 : -1].float()  # [new, vocab_size]
    if config.never_pad:
        logits[:, config.pad_id] = -torch.inf
    best = logits.amax(-1)
    taken = logits[torch.arange(len(ids)), torch.tensor(ids)]
    assert bool((best - taken <= 4 * eps * best.abs().clamp(min=1)).all())
    assert len(list(stream(model, first, prefix, max_new=3))) <= 3


@each
@pytest.mark.parametrize("name", ["gpt2", "qwen2"])
@pytest.mark.sample(1)
def test_the_same_continuation_as_transformers(root, name, dtype):
    """Token by token, given what theirs has written so far: theirs is the best or as good as the best of ours."""
    opened, other = (
        load(root / name, dtype=dtype),
        theirs(root / name, load(root / name).report.declared, getattr(torch, dtype)),
    )
    prompt = [token.id for token in opened.encode(TEXT)]
    options = dict(max_new_tokens=12, min_new_tokens=12, do_sample=False, use_cache=True, eos_token_id=None)
    ids = other.generate(torch.tensor([prompt]), **options)[0].tolist()
    logits = opened.trace(ids=ids).logits.float()[len(prompt) - 1 : -1]
    taken = logits[torch.arange(12), torch.tensor(ids[len(prompt) :])]
    room = ROUNDINGS * torch.finfo(getattr(torch, dtype)).eps * logits.abs().amax(-1).clamp(min=1)
    assert bool((logits.amax(-1) - taken <= room).all())
