"""A recorded model is edited, and writes, as our own Transformer of the same weights does."""

import math
import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

import vizformer as vf
from tests import pretend_device
from tests.checkpoints.recorded.test_wrap import Letters, Translator, words
from tests.recorder.all_types import VOCAB, made
from tests.recorder.hand_written import GPT, KINDS, V, d
from vizformer.errors import GenerationError, TraceError
from vizformer.generation import BeamTree, Sampling
from vizformer.model import Edit, Patch
from vizformer.model.edit import Cell

TEXT = "w7 w8 w9 w10 w8 w12"
SITE = "decoder.1.self"

EDITS = {
    "a query's number": Edit(cells=(Cell(f"{SITE}.q", (2, 3, 1), 0.7),)),
    "a key's and a value's": Edit(cells=(Cell(f"{SITE}.k", (0, 1, 2), -1.0), Cell(f"{SITE}.v", (3, 0, 0), 2.0))),
    "a blocked cell": Edit(cells=(Cell("decoder.0.self.mask", (4, 1), -math.inf),)),
    "an opened cell": Edit(cells=(Cell("decoder.0.self.mask", (1, 4), 0.0),)),
    "the stream": Edit(cells=(Cell("decoder.0.pre", (2, 5), 1.5), Cell("decoder.1.pre", (0, 0), -1.0))),
    "no scale": Edit(unscaled=frozenset({SITE})),
    "a temperature": Edit(temperatures={"decoder.0.self": 3.0}),
    "a head out": Edit(patches=(Patch(f"{SITE}.z", (2,), 0.0),)),
    "a row of z added to": Edit(patches=(Patch("decoder.0.self.z", (1, 3), torch.ones(8), adds=True),)),
    "an even pattern": Edit(patches=(Patch(f"{SITE}.pattern", (3, 5), torch.full((6,), 1 / 6)),)),
    "all queries": Edit(patches=(Patch(f"{SITE}.q", (), 0.5),)),
    "a row of the stream": Edit(patches=(Patch("decoder.1.pre", (2,), torch.linspace(-1, 1, 32)),)),
    "a layer skipped": Edit(skipped=frozenset({"decoder.0"})),
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A GPT-2 converted, and the same one wrapped."""
    folder, model = tmp_path_factory.mktemp("gpt2"), made("gpt2")
    model.save_pretrained(folder)
    words(VOCAB).save(str(folder / "tokenizer.json"))
    return vf.load(folder), vf.wrap(model, words(VOCAB))


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_does_what_it_does_in_our_own_model(pair, name):
    own, recorded = (checkpoint.trace(TEXT, edit=EDITS[name]) for checkpoint in pair)
    plain = pair[0].trace(TEXT)
    assert not torch.allclose(own.logits, plain.logits, atol=1e-4)
    assert_close(recorded.logits, own.logits, rtol=0, atol=2e-5)
    for site in own.sites:
        for head in range(4):
            assert_close(recorded[site].pattern(head), own[site].pattern(head), rtol=0, atol=1e-5)
        assert torch.equal(recorded[site].reason(0), own[site].reason(0))
    assert recorded.edit == EDITS[name]


@pytest.mark.parametrize("name", ["a blocked cell", "no scale", "a head out", "a layer skipped"])
def test_what_is_written_with_an_edit(pair, name):
    own, recorded = (checkpoint.generate(TEXT, max_new=6, edit=EDITS[name]).ids for checkpoint in pair)
    assert own == recorded


def test_what_is_not_known_of_somebodys_code_is_refused_in_words(pair):
    for name in ("decoder.0.feedforward", "decoder.0.self", "decoder.0.feedforward.hidden", "decoder.0.mid", "what"):
        with pytest.raises(TraceError, match=r"cannot be set in a recorded model|is nothing called"):
            pair[1].trace(TEXT, edit=Edit(patches=(Patch(name),)))
    with pytest.raises(TraceError, match="is nothing called"):
        pair[1].trace(TEXT, edit=Edit(temperatures={"decoder.7.self": 2.0}))
    with pytest.raises(TraceError, match="there is no cell"):
        pair[1].trace(TEXT, edit=Edit(cells=(Cell(f"{SITE}.q", (0, 99, 0), 1.0),)))


def test_heads_that_are_modules_of_their_own():
    checkpoint = vf.wrap(GPT(KINDS["Loop"]), Letters())
    plain, out = checkpoint.trace("a cat"), checkpoint.trace("a cat", edit=EDITS["a head out"])
    module = checkpoint.module
    with torch.no_grad():
        x = plain.residual("decoder.1.pre")[None]
        z = torch.cat([plain[SITE].z(head) * (head != 2) for head in range(4)], -1)[None]
        x = x + module.h[1].attn.wo(z)
        x = x + module.h[1].mlp(module.h[1].ln_2(x))
        expected = module.lm_head(module.ln_f(x))[0]
    assert_close(out.logits, expected, rtol=0, atol=1e-4)
    assert z.shape[-1] == 4 * d


@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(temperature=1.2, seed=3), Sampling(temperature=0.9, top_k=7, seed=1)]
)
def test_what_is_written_is_what_our_own_model_writes(pair, sampling):
    one, two = (list(checkpoint.stream(TEXT, max_new=12, sampling=sampling)) for checkpoint in pair)
    assert [step.id for step in one] == [step.id for step in two]
    assert [step.end for step in one] == [step.end for step in two]
    assert [step.cache_bytes for step in one] == [step.cache_bytes for step in two]
    for a, b in zip(one, two, strict=True):
        assert_close(a.probabilities, b.probabilities, rtol=0, atol=1e-5)
    chosen = [step.id for step in pair[1].stream(TEXT, max_new=4, instead={1: 5})]
    assert chosen[1] == 5


def test_a_beam_finds_what_our_own_finds(pair):
    trees = BeamTree(), BeamTree()
    one, two = (checkpoint.beam(TEXT, max_new=5, tree=tree) for checkpoint, tree in zip(pair, trees, strict=True))
    assert [found.ids for _, found in one] == [found.ids for _, found in two]
    assert [found.score for _, found in one] == pytest.approx([found.score for _, found in two], abs=1e-4)
    assert [node.id for node in trees[0].nodes] == [node.id for node in trees[1].nodes]


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_an_encoder_decoder_of_transformers_writes_with_its_cache(name):
    model = made(name)
    checkpoint = vf.wrap(model, words(VOCAB))
    steps = list(checkpoint.stream("w7 w8 w9", max_new=8))
    start = [*checkpoint.shape.start_ids]
    with torch.no_grad():
        for step in steps:
            out = model(input_ids=torch.tensor([[7, 8, 9]]), decoder_input_ids=torch.tensor([start])).logits[0, -1]
            assert_close(step.probabilities, out.double().softmax(-1).to(step.probabilities), rtol=0, atol=1e-5)
            start.append(step.id)
    assert steps[-1].cache_bytes > steps[0].cache_bytes > 0
    trace = checkpoint.trace("w7 w8 w9")  # it writes its target itself
    assert [token.id for token in trace.tokens["decoder"]][: len(start)] == [
        id for id in start if id != checkpoint.shape.eos_id or id in checkpoint.shape.start_ids
    ][: len(trace.tokens["decoder"])]


@pytest.mark.parametrize("name", ["mistral", "gemma2", "gpt_oss", "deepseek_v3", "falcon", "bloom"])
def test_types_are_edited_and_write_with_their_caches_also_beyond_a_window(name):
    model = made(name)
    checkpoint, ids = vf.wrap(model, words(VOCAB)), [7, 8, 9]
    steps = list(checkpoint.stream("w7 w8 w9", max_new=8))  # windows are of 4
    for step in steps:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids])).logits[0, -1]
        assert_close(step.probabilities.float(), logits.softmax(-1), rtol=0, atol=1e-4)
        ids.append(step.id)
    assert steps[-1].cache_bytes > 0
    plain, out = checkpoint.trace("w7 w8 w9"), checkpoint.trace("w7 w8 w9", edit=Edit(skipped=frozenset({"decoder.0"})))
    assert_close(out.residual("decoder.1.pre"), plain.residual("decoder.0.pre"))
    warm = checkpoint.trace("w7 w8 w9", edit=Edit(temperatures={SITE: 2.0}))
    assert not torch.allclose(warm.logits, plain.logits, atol=1e-4)
    assert warm[SITE].scale == pytest.approx(plain[SITE].scale / 2)


def test_code_without_a_cache_writes_by_full_forwards():
    checkpoint = vf.wrap(Translator(), Letters(), start_ids=(26,), eos_id=27)
    steps, ids = list(checkpoint.stream("a cat", max_new=6)), [26]
    for step in steps:
        with torch.no_grad():
            logits = checkpoint.module(torch.tensor([Letters().encode("a cat")]), torch.tensor([ids]))[0, -1]
        assert step.id == int(logits.argmax())
        assert step.cache_bytes == 0
        ids.append(step.id)
    gpt = vf.wrap(GPT(), Letters(), max_positions=8)
    assert [step.end for step in gpt.stream("a cat", max_new=20)][-1] == "context"
    with pytest.raises(GenerationError, match="no room"):
        gpt.generate("a cat is")


def test_a_model_that_hands_back_its_last_row_alone_writes():
    class Last(GPT):
        """nanoGPT: (logits of the last position, loss)."""

        def forward(self, ids):
            return super().forward(ids)[:, [-1]], None

    full, last = vf.wrap(GPT(), Letters()), vf.wrap(Last(), Letters())
    assert last.generate("a cat", max_new=5).ids == full.generate("a cat", max_new=5).ids
    edit = Edit(patches=(Patch("decoder.1.self.z", (2,), 0.0),))
    for one in (None, edit):
        assert_close(last.trace("a cat", edit=one).logits, full.trace("a cat", edit=one).logits, rtol=0, atol=1e-5)
    assert last.shape.vocab_size == V


def test_an_encoder_of_one_token_stays_an_encoder():
    checkpoint = vf.wrap(made("bert"), words(VOCAB))
    assert checkpoint.trace("w7").sites == ("encoder.0.self", "encoder.1.self")
    with pytest.raises(TraceError, match="no decoder"):
        checkpoint.generate("w7")


def test_threads_edit_write_and_read_one_checkpoint_at_once(pair):
    checkpoint, wrong = pair[1], list[str]()
    edit = EDITS["a head out"]
    alone = (
        checkpoint.trace(TEXT).logits,
        checkpoint.trace(TEXT, edit=edit).logits,
        checkpoint.generate(TEXT, max_new=4),
    )

    def work(kind: int) -> None:
        for _ in range(8):
            if kind == 2:
                same = checkpoint.generate(TEXT, max_new=4).ids == alone[2].ids
            else:
                same = torch.equal(checkpoint.trace(TEXT, edit=edit if kind else None).logits, alone[kind])
            if not same:
                wrong.append(str(kind))

    threads = [threading.Thread(target=work, args=(number % 3,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


class Fast(KINDS["Separate"]):
    def forward(self, x):
        return self.out(F.scaled_dot_product_attention(*self.qkv(x), is_causal=True))


class Sinking(KINDS["Separate"]):
    def __init__(self):
        super().__init__()
        self.sink = nn.Parameter(torch.ones(4, 1, 1))

    def forward(self, x):
        q, k, v = self.qkv(x)
        sink = self.sink.expand(len(x), -1, x.shape[1], 1)
        p = torch.cat([q @ k.mT / d**0.5, sink], -1).softmax(-1)[..., :-1]
        return self.out(p @ v)


class Placed(GPT):
    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


@pytest.mark.parametrize("kind", [KINDS["Fused"], Fast, Sinking])
def test_on_another_device_every_number_is_that_of_the_processor(kind):
    here = vf.wrap(Placed(kind), Letters(), max_positions=20)
    stack = here.shape.last_stack
    edit = Edit(
        cells=(Cell(f"{stack}.0.self.mask", (3, 1), -math.inf), Cell(f"{stack}.1.self.q", (1, 2, 0), 0.5)),
        patches=(Patch(f"{stack}.1.self.z", (2,), 0.0), Patch(f"{stack}.1.pre", (1,), 0.25)),
        skipped=frozenset({f"{stack}.0"}),
    )
    expected = [here.trace("a cat sat", edit=one) for one in (None, edit)]
    with pretend_device.device() as device:
        there = vf.wrap(Placed(kind).to(device), Letters(), max_positions=20)
        for one, trace in zip((None, edit), expected, strict=True):
            found = there.trace("a cat sat", edit=one)
            assert found.logits.device == device
            assert_close(found.logits.cpu(), trace.logits)
            for site in trace.sites:
                assert_close(found[site].pattern(1).cpu(), trace[site].pattern(1))
                assert_close(found[site].z(1).cpu(), trace[site].z(1))
        heads = vf.analysis.TraceHeads(tuple(found[site] for site in found.sites))
        assert heads.small(0)[0].shape == (4, 9, 9)
        if here.shape.decoder_heads:
            assert there.generate("a cat", max_new=3).ids == here.generate("a cat", max_new=3).ids
