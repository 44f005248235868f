"""`vf.wrap`: any module with a tokenizer answers what a checkpoint of ours answers."""

import threading

import pytest
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers
from torch import Tensor, nn
from torch.testing import assert_close

import vizformer as vf
from tests.recorded_code import EXAMPLE
from tests.recorder.all_types import VOCAB, made
from tests.recorder.hand_written import GPT, KINDS, LAYERS, D, H, V, d
from vizformer.errors import CheckpointError, TokenizerError, TraceError

LETTERS = "abcdefghijklmnopqrstuvwxyz .!"
assert len(LETTERS) == V


class Letters:
    """As people write it for a small GPT."""

    def encode(self, text: str) -> list[int]:
        return [LETTERS.index(letter) for letter in text]

    def decode(self, ids: list[int]) -> str:
        return "".join(LETTERS[id] for id in ids)


class Translator(nn.Module):
    """torch's own encoder-decoder, with tables of tokens and places."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.table, self.places, self.out = nn.Embedding(V, D), nn.Embedding(32, D), nn.Linear(D, V)
        self.both = nn.Transformer(D, H, 2, 3, 24, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        rows = [self.table(ids) + self.places(torch.arange(ids.shape[1])) for ids in (source, target)]
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.out(self.both(*rows, tgt_mask=mask, tgt_is_causal=True))


def words(n: int) -> Backend:
    backend = Backend(models.WordLevel({f"w{id}": id for id in range(n)}, unk_token="w0"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return backend


def test_a_gpt_written_by_hand():
    model = GPT()
    checkpoint = vf.wrap(model, Letters(), name="mine")
    shape = checkpoint.shape
    assert (shape.architecture, shape.decoder_heads, shape.d_model, shape.d_head) == (
        "decoder-only",
        (H,) * LAYERS,
        D,
        d,
    )
    assert (shape.vocab_size, checkpoint.name, checkpoint.has_head) == (V, "mine", True)
    trace = checkpoint.trace("a cat sat")
    assert [token.text for token in trace.tokens["decoder"]] == list("a␣cat␣sat")  # (nothing invisible)
    assert trace.sites == ("decoder.0.self", "decoder.1.self")
    assert trace["decoder.0.self"].tokens[0] == tuple("a␣cat␣sat")
    with torch.no_grad():
        expected = model(torch.tensor([Letters().encode("a cat sat")]))
    assert torch.equal(trace.logits, expected[0])
    assert_close(trace["decoder.1.self"].pattern(2), model.h[1].attn.shown[-1][0, 2], rtol=0, atol=1e-6)


def test_an_encoder_decoder_of_torch():
    checkpoint = vf.wrap(Translator(), Letters(), start_ids=(26,), eos_id=27)
    shape = checkpoint.shape
    assert shape.architecture == "encoder-decoder"
    assert (shape.n_encoder_layers, shape.n_decoder_layers, shape.cross_heads) == (2, 3, (H,) * 3)
    trace = checkpoint.trace("a cat", target="the dog")
    assert [token.text for token in trace.tokens["decoder"]] == list("␣the␣dog")
    assert trace["decoder.2.cross"].tokens == (tuple("␣the␣dog"), tuple("a␣cat"))
    assert trace.logits.shape == (8, V)


@pytest.mark.parametrize(
    ("name", "architecture", "sites"),
    [("gpt2", "decoder-only", 2), ("bert", "encoder-only", 2), ("t5", "encoder-decoder", 6)],
)
def test_models_of_transformers(name, architecture, sites):
    checkpoint = vf.wrap(made(name), words(VOCAB))
    assert checkpoint.shape.architecture == architecture
    trace = checkpoint.trace("w7 w8 w9", target="w5 w6" if sites == 6 else None)
    assert len(trace.sites) == sites
    assert trace.logits.shape == (3, VOCAB)
    assert checkpoint.has_head


def test_a_gpt2_converted_and_wrapped_is_the_same(tmp_path):
    model = made("gpt2")
    model.save_pretrained(tmp_path)
    words(VOCAB).save(str(tmp_path / "tokenizer.json"))
    own, recorded = vf.load(tmp_path), vf.wrap(model, words(VOCAB))
    for field in ("architecture", "decoder_heads", "d_model", "d_head", "vocab_size", "max_positions"):
        assert getattr(own.shape, field) == getattr(recorded.shape, field), field
    one, two = (checkpoint.trace("w7 w8 w9 w10 w8") for checkpoint in (own, recorded))
    assert one.sites == two.sites
    assert one.tokens == two.tokens
    for site in one.sites:
        for head in range(4):
            assert_close(one[site].pattern(head), two[site].pattern(head), rtol=0, atol=1e-6)
            assert_close(one[site].scores(head), two[site].scores(head), rtol=0, atol=1e-5)  # of scores up to some 10
            assert_close(one[site].z(head), two[site].z(head), rtol=0, atol=1e-6)
        assert torch.equal(one[site].reason(0), two[site].reason(0))
    for stream in two.residuals:
        if not stream.endswith("final"):  # ours is after the last norm
            assert_close(one.residual(stream), two.residual(stream), rtol=0, atol=1e-6)
    assert_close(one.logits, two.logits, rtol=0, atol=1e-6)


def test_the_key_is_of_the_numbers_and_of_the_code():
    one, two = (vf.wrap(GPT(), Letters()) for _ in range(2))
    assert one.key == two.key
    other = GPT()
    with torch.no_grad():
        other.h[0].attn.wq.bias[0] += 1e-3
    assert vf.wrap(other, Letters()).key != one.key
    assert vf.wrap(GPT(KINDS["Einsum"]), Letters()).key != one.key
    assert vf.wrap(GPT(), Letters(), eos_id=28).key != one.key


def test_heard_is_told_of_each_attention_call_and_may_end_the_run():
    checkpoint, told = vf.wrap(GPT(), Letters()), []
    checkpoint.trace("a cat", heard=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]

    def stop(done, total):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        checkpoint.trace("a cat", heard=stop)
    assert len(checkpoint.trace("a cat").sites) == 2


def test_bad_input_is_refused_in_words():
    checkpoint = vf.wrap(GPT(), Letters(), max_positions=8)
    with pytest.raises(TraceError, match="accepts 8"):
        checkpoint.trace("a long sentence")
    with pytest.raises(TokenizerError, match=r"own code stopped at encode \(ValueError"):
        checkpoint.trace("Ä")
    with pytest.raises(TokenizerError, match="0 to 28"):
        checkpoint.trace(ids=[29])
    with pytest.raises(TraceError, match="takes no target"):
        checkpoint.trace("a", target="b")
    with pytest.raises(CheckpointError, match=r"no torch\.nn\.Module"):
        vf.wrap(Letters(), GPT())
    with pytest.raises(CheckpointError, match="is no tokenizer"):
        vf.wrap(GPT(), 3)
    wide = vf.wrap(GPT(), Letters(), max_positions=64)
    with pytest.raises(TraceError, match="own code stopped"):
        wide.trace("a" * 40)


def test_how_long_a_text_may_be_is_tried_where_nothing_says_it():
    assert vf.wrap(GPT(), Letters()).shape.max_positions == 32  # its table of places
    assert vf.wrap(Translator(), Letters()).shape.max_positions == 32
    assert vf.wrap(made("gpt2"), words(VOCAB)).shape.max_positions == 64
    endless = GPT()
    endless.wpe = nn.Embedding(2000, D)
    assert vf.wrap(endless, Letters()).shape.max_positions == 1024


def test_tokens_that_are_parts_of_a_character_have_their_ids_as_names():
    exec(EXAMPLE, space := {"__name__": "own"})
    module, coder = space["load"]()
    wrapped = vf.wrap(module, coder)
    assert [token.text for token in wrapped.encode("é a")] == ["[195]", "[169]", "␣", "a"]
    assert wrapped.tokenizer.decode([195, 169]) == "é"


def test_without_a_tokenizer_ids_are_typed():
    trace = vf.wrap(GPT()).trace("3 1 4")
    assert [token.id for token in trace.tokens["decoder"]] == [3, 1, 4]


def test_eight_threads_use_one_checkpoint():
    checkpoint = vf.wrap(GPT(), Letters())
    texts = [f"{letter} cat sat" for letter in "abcdefgh"]
    alone = {text: checkpoint.trace(text) for text in texts}
    wrong: list[str] = []

    def work(text: str) -> None:
        for _ in range(25):
            trace = checkpoint.trace(text)
            same = all(torch.equal(trace.residuals[name], x) for name, x in alone[text].residuals.items())
            if not same or not torch.equal(trace.logits, alone[text].logits):
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(text,)) for text in texts]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_checks_are_of_two_lengths_and_may_be_ended():
    wrapped = vf.wrap(GPT(), Letters())
    parts = []
    found = wrapped.checks(heard=parts.append)
    assert (found.exact, found.whole, found.tokenwise, found.lengths) == (True, True, True, (7, 21))
    assert parts[-1] == 1

    class EndedError(Exception):
        pass

    def end(_part):
        raise EndedError

    with pytest.raises(EndedError):
        wrapped.checks(heard=end)
    both = vf.wrap(Translator(), Letters())
    assert both.shape.architecture == "encoder-decoder"
    assert (both.checks().exact, both.checks().whole, both.checks().tokenwise) == (True, True, True)
