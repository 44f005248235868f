"""From a text to a trace: what goes in, what comes out, what is refused."""

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
import torch
from tokenizers.processors import TemplateProcessing

from recipes.vocabulary import train_bpe
from tests import tiny
from tests.greedy import greedy_steps
from vizformer.checkpoints import Checkpoint
from vizformer.errors import GenerationError, TokenizerError, TraceError
from vizformer.generation import Sampling
from vizformer.text import Tokenizer


def ids_of(trace_tokens: tuple[Any, ...]) -> list[int]:
    return [token.id for token in trace_tokens]


def test_a_given_target() -> None:
    checkpoint = tiny.checkpoint()
    trace = checkpoint.trace("我有 cat", target="The cats")
    tokenizer = checkpoint.tokenizer
    assert list(trace.tokens) == ["encoder", "decoder"]
    assert ids_of(trace.tokens["encoder"]) == ids_of(tokenizer.encode("我有 cat"))
    assert trace.tokens["encoder"][-1].text == "</s>"
    assert ids_of(trace.tokens["decoder"]) == [1, *ids_of(tokenizer.encode("The cats", special=False))]
    assert trace.tokens["decoder"][0].text == "<s>"
    encoder, decoder = len(trace.tokens["encoder"]), len(trace.tokens["decoder"])
    assert trace["decoder.1.cross"].pattern(0).shape == (decoder, encoder)
    assert trace.logits.shape == (decoder, tokenizer.vocab_size)
    with torch.inference_mode():
        expected = checkpoint.model(
            torch.tensor([ids_of(trace.tokens["encoder"])]), torch.tensor([ids_of(trace.tokens["decoder"])])
        )
    assert torch.equal(trace.logits, expected[0])


def test_tokens_point_into_their_own_text() -> None:
    trace = tiny.checkpoint().trace("我有 cat", target="She has cats")
    for stack, text in (("encoder", "我有 cat"), ("decoder", "She has cats")):
        ordinary = [token for token in trace.tokens[stack] if not token.special]
        assert "".join(text[token.start : token.end] for token in ordinary) == text.replace(" ", "")


@pytest.mark.parametrize("target", [None, "", "  \n"])
def test_without_a_target_one_is_generated(target: str | None) -> None:
    """The trace of a generated target shows, at every position, the choice that was made."""
    checkpoint = tiny.checkpoint(max_positions=12)
    trace = checkpoint.trace("我有", target=target)
    steps = greedy_steps(checkpoint.model, ids_of(checkpoint.encode("我有")), (1,), max_new=11)
    chosen = [step.id for step in steps if step.id != 2]
    assert ids_of(trace.tokens["decoder"]) == [1, *chosen]
    assert trace.logits.argmax(-1).tolist()[: len(chosen)] == chosen
    for position, step in enumerate(steps[: len(chosen)]):
        tiny.assert_close(torch.softmax(trace.logits[position], -1), step.probabilities, 1e-5)


def test_a_generated_target_does_not_end_in_its_end_mark() -> None:
    checkpoint = always(2)
    assert ids_of(checkpoint.trace("cat").tokens["decoder"]) == [1]
    assert checkpoint.generate("cat").ids == (2,)
    assert checkpoint.generate("cat").text == ""


def always(id: int, architecture: str = "encoder-decoder") -> Checkpoint:
    """A model that always predicts one token."""
    checkpoint = tiny.checkpoint(architecture, tied_unembedding=False, norm_order="pre", final_norm=True)
    model = checkpoint.model
    stack = model.encoder if model.decoder is None else model.decoder
    assert stack is not None
    stack.final_norm.weight.zero_()
    stack.final_norm.bias.fill_(1.0)
    model.unembedding.weight.zero_()
    model.unembedding.weight[id] = 1.0
    return checkpoint


def test_one_stack_models() -> None:
    for architecture, stack in (("decoder-only", "decoder"), ("encoder-only", "encoder")):
        checkpoint = tiny.checkpoint(architecture)
        for target in (None, "", " "):
            trace = checkpoint.trace("我有 cat", target=target)
            assert list(trace.tokens) == [stack]
            assert trace.logits.shape[0] == len(trace.tokens[stack])
        for arguments in (dict(target="cat"), dict(target_ids=[1, 3])):
            with pytest.raises(TraceError, match=r"tiny has one stack and takes no target; leave the target empty"):
                checkpoint.trace("我有 cat", **arguments)


def test_token_ids_instead_of_text() -> None:
    checkpoint = tiny.checkpoint()
    by_text = checkpoint.trace("我有 cat", target="cat")
    ids, target_ids = (ids_of(tokens) for tokens in by_text.tokens.values())
    by_ids = checkpoint.trace(ids=ids, target_ids=target_ids)
    assert torch.equal(by_ids.logits, by_text.logits)
    assert [token.text for token in by_ids.tokens["encoder"]] == [token.text for token in by_text.tokens["encoder"]]
    assert torch.equal(checkpoint.trace("我有 cat", target_ids=tuple(target_ids)).logits, by_text.logits)
    assert tiny.checkpoint("decoder-only").trace(ids=range(3, 6)).logits.shape[0] == 3


def test_one_token() -> None:
    for architecture in tiny.STACKS:
        checkpoint = tiny.checkpoint(architecture)
        target = dict(target_ids=[1]) if architecture == "encoder-decoder" else {}
        trace = checkpoint.trace(ids=[5], **target)
        for site in trace.sites:
            assert trace[site].pattern(3).tolist() == [[1.0]]


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    (dict(text=""), TraceError, "no text yet: type a sentence"),
    (dict(text="   \n\t\u3000"), TraceError, "no text yet: type a sentence"),
    (dict(text="猫" * 100_000), TraceError, r"100,000 characters; at most 20,000 can be read at once. Paste a shorter"),
    (dict(text="猫" * 2000), TraceError, r"2001 tokens; this model accepts 32. Shorten it by 1969"),
    (dict(text="猫", target="a" * 100_000), TraceError, "100,000 characters"),
    (dict(text="猫", target="猫" * 50), TraceError, r"51 tokens; this model accepts 32. Shorten it by 19"),
    (dict(ids=[]), TraceError, "no token to look at"),
    (dict(ids=[3] * 33), TraceError, r"33 tokens; this model accepts 32. Shorten it by 1"),
    (dict(ids=[-1]), TokenizerError, r"-1 is not in the vocabulary: ids go from 0 to"),
    (dict(ids=[10**6]), TokenizerError, r"1000000 is not in the vocabulary: ids go from 0 to"),
    (dict(text="猫", target_ids=[]), TraceError, "no token to look at"),
    (dict(text="猫", target_ids=[2**70]), TokenizerError, "not in the vocabulary"),
    (dict(), TraceError, "Give either a text or token ids"),
    (dict(text="猫", ids=[3]), TraceError, "Give either a text or token ids"),
    (dict(text="cat \ud800"), TokenizerError, "Remove unusual characters"),
    (dict(text="猫", target="\udfff"), TokenizerError, "Remove unusual characters"),
]


@pytest.mark.parametrize(("arguments", "error", "said"), REFUSED, ids=lambda value: ascii(value)[:24])
def test_what_cannot_be_read_is_refused(arguments: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        tiny.checkpoint().trace(**arguments)


ODD = [
    "x",
    "🐱",
    "שלום",
    "\x00",
    "a\x07\x1b[0m",
    "\u200b",
    "<b>&amp;",
    "$\\frac{1}{0}$",
    "\U0010ffff",
    "<s></s><pad>",
]


@pytest.mark.parametrize("text", ODD, ids=ascii)
def test_odd_texts_are_read(text: str) -> None:
    trace = tiny.checkpoint().trace(text, target=text)
    assert trace.logits.isfinite().all()
    assert all(token.text.isprintable() for tokens in trace.tokens.values() for token in tokens)


def test_the_longest_text_that_fits() -> None:
    checkpoint = tiny.checkpoint(max_positions=32)
    assert len(checkpoint.encode("猫" * 31)) == 32  # and the end mark
    trace = checkpoint.trace("猫" * 31)
    assert len(trace.tokens["encoder"]) == 32
    assert len(trace.tokens["decoder"]) <= 32


def test_generate() -> None:
    checkpoint = tiny.checkpoint()
    made = checkpoint.generate("我有", max_new=5)
    steps = greedy_steps(checkpoint.model, ids_of(checkpoint.encode("我有")), (1,), max_new=5)
    assert made.ids == tuple(step.id for step in steps)
    assert made.text == checkpoint.tokenizer.decode(list(made.ids)).strip()
    assert [step.id for step in made.steps] == list(made.ids)
    decoder = tiny.checkpoint("decoder-only")
    assert len(decoder.generate("我有", max_new=3).ids) <= 3
    with pytest.raises(TraceError, match="tiny has no decoder"):
        tiny.checkpoint("encoder-only").generate("我有")
    with pytest.raises(TraceError, match="no text yet"):
        checkpoint.generate(" ")


@pytest.mark.sweep
def test_the_key_tells_models_apart() -> None:
    checkpoint = tiny.checkpoint()
    assert checkpoint.key == tiny.checkpoint().key
    retold = Tokenizer(train_bpe([*tiny.TEXTS, "dogs dogs"] * 3, 320))  # the same size, other merges
    same_weights = Checkpoint("tiny", checkpoint.model, retold)
    assert (retold.vocab_size, same_weights.key == checkpoint.key) == (checkpoint.tokenizer.vocab_size, False)
    others = (tiny.checkpoint(seed=1), tiny.checkpoint(norm_eps=1e-4), tiny.checkpoint(pad_id=3))
    keys = {checkpoint.key, *(other.key for other in others)}
    for name, _ in checkpoint.model.named_parameters():
        other = tiny.checkpoint()
        other.model.get_parameter(name).view(-1)[-1] += 1e-6  # one number of the whole model
        keys.add(other.key)
    assert len(keys) == 4 + len(list(checkpoint.model.parameters()))


def test_a_checkpoint_is_frozen() -> None:
    checkpoint = tiny.checkpoint()
    assert not checkpoint.model.training
    assert not any(parameter.requires_grad for parameter in checkpoint.model.parameters())
    with pytest.raises(FrozenInstanceError):
        checkpoint.name = "other"  # type: ignore[misc]


def test_a_stream_of_tokens() -> None:
    checkpoint = tiny.checkpoint()
    sampling = Sampling(seed=5, top_k=50)
    steps = list(checkpoint.stream("我有", sampling=sampling, max_new=6))
    made = checkpoint.generate("我有", sampling=sampling, max_new=6)
    assert made.ids == tuple(step.id for step in steps)
    assert made.text == checkpoint.tokenizer.decode(list(made.ids)).strip()
    branched = list(checkpoint.stream("我有", sampling=sampling, max_new=6, instead={1: 7}))
    assert (branched[0].id, branched[1].id) == (steps[0].id, 7)


def test_what_generation_starts_from() -> None:
    checkpoint = tiny.checkpoint()
    prompt, beginning = checkpoint.opening("我有")
    assert ids_of(prompt) == ids_of(checkpoint.encode("我有"))
    assert ids_of(beginning) == [1]
    given = checkpoint.tokenizer.encode("The", special=False)
    assert ids_of(checkpoint.opening("我有", "The")[1]) == [1, *ids_of(given)]
    steps = list(checkpoint.stream("我有", target="The", max_new=1))
    assert steps[0].length == len(checkpoint.opening("我有", "The")[1])
    decoder = tiny.checkpoint("decoder-only")
    prompt, beginning = decoder.opening("我有")
    assert prompt == ()
    assert ids_of(beginning) == ids_of(decoder.encode("我有"))[:-1]  # without the end mark: the text goes on


def test_prompts_at_and_over_the_context() -> None:
    library = train_bpe(tiny.TEXTS * 3, 320)
    library.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])  # no end mark
    tokenizer = Tokenizer(library)
    model = tiny.model("decoder-only", max_positions=8, vocab_size=tokenizer.vocab_size)
    decoder = Checkpoint("tiny", model, tokenizer)
    assert len(decoder.generate("猫" * 6).ids) == 1  # with the start mark: one position is left
    with pytest.raises(GenerationError, match="fills all 8 positions"):
        decoder.stream("猫" * 7)
    with pytest.raises(TraceError, match="Shorten it by 1"):
        decoder.stream("猫" * 8)
    with pytest.raises(TraceError, match="no text yet"):
        decoder.stream(" ")
    both = tiny.checkpoint(max_positions=8)
    with pytest.raises(GenerationError, match="fills all 8 positions"):
        both.stream("猫", target="猫" * 7)
    with pytest.raises(TraceError, match="Shorten it by 1"):
        both.stream("猫", target="猫" * 8)
    for refused in (both.beam, both.generate):
        with pytest.raises(TraceError, match="no text yet"):
            refused("")
