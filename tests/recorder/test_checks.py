"""The recorder knows when it does not know: what is not exact, whole or tokenwise is named."""

import pytest
import torch
from torch import nn

import vizformer as vf
from tests.recorder.all_types import CHOSEN, given, made
from tests.recorder.hand_written import GPT, KINDS, Additive, Attention, Block, D, Separate, d, future, ids
from vizformer.recorder import check, check_lengths, lengths_of


@pytest.mark.parametrize("name", KINDS)
def test_a_style_is_exact_whole_and_tokenwise(name):
    found = check(GPT(KINDS[name]), ids(2, 8))
    assert (found.exact, found.whole, found.tokenwise, found.said) == (True, True, True, ())
    assert max(found.errors.values()) < 1e-5


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CHOSEN)
def test_a_type_is_exact_whole_and_tokenwise(name):
    model = made(name, "eager")
    found = check(model, **given(model))
    assert (found.exact, found.whole, found.tokenwise, found.said) == (True, True, True, ())


class Convolved(Block):
    """Tokens mix in a convolution beside attention."""

    def __init__(self) -> None:
        super().__init__(Separate)
        self.conv = nn.Conv1d(D, D, 3, padding=1)

    def forward(self, x):
        x = super().forward(x)
        return x + self.mixed(x)

    def mixed(self, x):
        return self.conv(x.transpose(1, 2)).transpose(1, 2)


class Shifted(Block):
    """Tokens mix in a function, which is no module."""

    def __init__(self) -> None:
        super().__init__(Separate)

    def forward(self, x):
        return super().forward(x + 0.5 * x.roll(1, dims=1))


class KeysConvolved(Attention):
    """Keys are made of a token and the one before it."""

    def forward(self, x):
        q, k, v = self.qkv(x)
        k = k + nn.functional.pad(k, (0, 0, 1, 0))[:, :, :-1]
        p = (q @ k.mT * d**-0.5).masked_fill(future(x.shape[1]), -torch.inf).softmax(-1)
        return self.out(self.keep(p) @ v)


def with_block(block):
    model = GPT()
    model.h[1] = block()
    model.h[0] = block()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model.eval()


@pytest.mark.parametrize("block", [Convolved, Shifted])
def test_tokens_that_mix_elsewhere_are_named(block):
    found = check(with_block(block), ids(1, 8))
    assert found.exact
    assert not found.whole
    assert "h.0" in {name[:3] for name in found.mixing}
    assert all(name.startswith("h.") for name in found.mixing)
    assert "tokens also mix in h.0" in str(found.said[0])


def test_keys_that_hold_other_tokens_are_named():
    found = check(GPT(KeysConvolved), ids(1, 8))
    assert found.exact
    assert found.whole
    assert not found.tokenwise
    assert found.moved == ("h.0.attn", "h.1.attn")


def test_attention_that_escaped_is_no_whole_recording():
    model = GPT()
    model.h[1].attn = Additive()
    found = check(model.eval(), ids(1, 8))
    assert not found.whole
    assert "h.1.attn" in found.mixing
    assert any("h.1.attn" in str(said) for said in found.escaped)


def test_queries_that_were_changed_in_place_are_not_exact():
    class InPlace(Attention):
        def forward(self, x):
            q, k, v = self.qkv(x)
            scores = q @ k.mT * d**-0.5
            q.mul_(3.0)
            return self.out(scores.softmax(-1) @ v)

    found = check(GPT(InPlace), ids())
    assert not found.exact
    assert found.inexact == ("h.0.attn", "h.1.attn")
    assert any("changed in place" in str(said) for said in found.escaped)


def test_without_blocks_nothing_is_tried_and_that_is_said():
    found = check(Separate().eval(), torch.randn(1, 6, D))
    assert found.exact
    assert found.mixing is None
    assert not found.whole
    assert "no repeated blocks" in str(found.said[-1])


def test_attention_outside_of_the_blocks_is_named():
    class Ended(GPT):
        def __init__(self) -> None:
            super().__init__()
            self.last = Separate().eval()

        def forward(self, ids):
            x = self.wte(ids)
            for block in self.h:
                x = block(x)
            return self.lm_head(self.last(x))

    found = check(Ended(), ids(1, 8))
    assert (found.exact, found.mixing, found.whole) == (True, (), False)
    assert found.outside == ("last",)
    assert "at last attention lies outside" in str(found.said[0])


def test_a_model_without_attention_has_a_result_that_says_so():
    found = check(nn.Sequential(nn.Linear(4, 4)), torch.randn(2, 4))
    assert (found.exact, found.whole, found.tokenwise) == (False, False, False)
    assert str(found.said[0]) == "no attention was recorded"


def test_tokens_that_mix_without_attention_are_named():
    class Rolled(Attention):
        def forward(self, x):
            return self.wo(x.roll(1, 1))

    found = check(GPT(Rolled), ids(1, 8))
    assert not found.exact
    assert found.mixing == ("h.0.attn",)


class Late(Attention):
    """Beyond a window of 12 tokens the code does something else."""

    def __init__(self) -> None:
        super().__init__()
        self.window_size = 12

    def forward(self, x):
        q, k, v = self.qkv(x)
        p = (q @ k.mT * d**-0.5).masked_fill(future(x.shape[1]), -torch.inf).softmax(-1)
        return self.out(p @ v) + (x.roll(1, 1) if x.shape[1] > self.window_size else 0)


def test_a_second_text_is_longer_than_the_longest_window():
    model = GPT(Late)
    assert check(model, ids(1, 8)).whole
    lengths = lengths_of(model)
    assert lengths[1] > 12 > lengths[0]
    found = check_lengths(model, lambda n: model(ids(1, n)), lengths)
    assert found.exact
    assert not found.whole
    assert "h.0.attn" in found.mixing
    assert found.lengths == lengths


def test_a_window_that_is_too_long_to_be_tried_is_named():
    model = GPT(Late)
    assert lengths_of(model, 10) == (7, 10)
    found = check_lengths(model, lambda n: model(ids(1, n)), lengths_of(model, 10))
    assert found.whole
    assert found.window == 12
    assert "a window of 12 tokens" in str(found.said[-1])


def test_windows_are_read_from_configs_and_those_of_layers_are_not():
    from types import SimpleNamespace

    from vizformer.recorder.checks import windows

    model = GPT()
    model.config = SimpleNamespace(sliding_window=40, max_window_layers=28, attention_window=[6, 80], window=True)
    assert windows(model) == (6, 40, 80)
    assert lengths_of(model) == (7, 88)
    assert lengths_of(GPT()) == (7, 21)


def test_checks_say_how_far_they_are_and_end_where_they_are_told_to():
    model, ran = GPT(), []

    def run(n):
        ran.append(n)
        model(ids(1, n))

    heard = []
    found = check_lengths(model, run, (5, 9), heard=heard.append)
    assert heard == sorted(set(heard))
    assert heard[-1] == 1
    assert found == check_lengths(model, run, (5, 9))

    class StopError(Exception):
        pass

    def stop(part):
        raise StopError

    ran.clear()
    with pytest.raises(StopError):
        check_lengths(model, run, (5, 9), heard=stop)
    assert ran == [5]

    def between(part):  # nothing records there
        with torch.no_grad(), vf.recording(model) as trace:
            model(ids())
        assert trace.sites

    assert check_lengths(model, run, (5,), heard=between).exact


def test_what_a_compiled_function_computes_is_named():
    @torch.compile(backend="aot_eager")
    def attend(q, k, v):
        return (q @ k.mT).softmax(-1) @ v

    class Compiled(Attention):
        def forward(self, x):
            return self.out(attend(*self.qkv(x)))

    model = GPT(Compiled)
    with torch.no_grad():
        alone = model(ids())
    trace = vf.record(model, ids())
    assert torch.equal(trace.output, alone)
    assert not trace.sites  # (with the backend "eager" its calls are met one by one, and there are)
    assert any("h.0.attn" in str(said) for said in trace.escaped), [str(said) for said in trace.escaped]


def test_flex_attention_is_named():
    from torch.nn.attention.flex_attention import flex_attention

    class Flex(Attention):
        def forward(self, x):
            return self.out(flex_attention(*self.qkv(x)))

    trace = vf.record(GPT(Flex), ids())
    assert not trace.sites
    assert any("h.0.attn" in str(said) for said in trace.escaped), [str(said) for said in trace.escaped]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["gpt2", "llama", "bart"])
def test_generation_of_transformers_is_one_run(name):
    model = made(name, "sdpa")
    inputs = given(model)
    inputs.pop("decoder_input_ids", None)
    with torch.no_grad(), vf.recording(model) as trace:
        out = model.generate(**inputs, max_new_tokens=6, min_new_tokens=6, do_sample=False)
    assert trace.n_runs == 1
    assert not trace.escaped, [str(said) for said in trace.escaped]
    whole = {"decoder_input_ids": out[:, :-1], **inputs} if name == "bart" else {"input_ids": out[:, :-1]}
    at_once = vf.record(model, **whole)
    assert trace.sites == at_once.sites
    for one, other in zip(trace.attention, at_once.attention, strict=True):
        torch.testing.assert_close(one.maps(), other.maps(), rtol=0, atol=2e-5)
        assert one.is_exact


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_heads_that_a_static_cache_folds_into_queries_are_named():
    model = made("llama", "sdpa", num_key_value_heads=2)
    options = dict(max_new_tokens=3, min_new_tokens=3, do_sample=False, cache_implementation="static")
    with torch.no_grad(), vf.recording(model) as trace:
        model.generate(**given(model), disable_compile=True, **options)
    assert any("2 queries for 1 tokens" in str(said) for said in trace.escaped)
