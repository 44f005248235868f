"""Several threads run one model at once: every number equals that of the run alone."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import vizformer as vf
from tests.recorder.hand_written import GPT, KINDS, ids
from vizformer import HeadEdit, StreamEdit
from vizformer.errors import TraceError
from vizformer.recorder import forget


def numbers(trace):
    assert not trace.escaped
    found = [trace.output]
    for one in trace.attention:
        found += [one.q, one.k, one.v, one.maps(), *(one.z(head) for head in range(one.n_heads))]
    return found + [trace.residual(name) for name in trace.streams]


def encoder():
    torch.manual_seed(1)
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 24, batch_first=True), 2).eval()


def numbered(seed):
    return ids(2, 7, seed)


def drawn(seed):
    return torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(seed))


MODELS = {
    "gpt": (GPT, numbered, "h.0.attn", "h.0"),
    "fused": (lambda: GPT(KINDS["Sdpa"]), numbered, "h.0.attn", "h.0"),
    "torch": (encoder, drawn, "layers.0.self_attn", "layers.0"),
}


@pytest.mark.parametrize("runs", [40, pytest.param(200, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", MODELS)
def test_eight_threads_record_edit_and_run_plainly(name, runs):
    make, given, site, block = MODELS[name]
    model = make()
    vf.record(model, given(0))  # from here on it has its hooks

    def plain(seed):
        with torch.no_grad():
            return [model(given(seed))]

    def recorded(seed):
        return numbers(vf.record(model, given(seed)))

    def edited(seed):
        edits = [HeadEdit(site, [seed % 4], z=0.0), StreamEdit(block, lambda x: x * 1.5)]
        with torch.no_grad(), vf.recording(model, edits=edits) as trace:
            model(given(seed))
        return numbers(trace)

    works = [plain, recorded, edited]
    alone = {(work, seed): work(seed) for work in works for seed in range(4)}
    start = threading.Barrier(8)

    def visitor(number):
        wrong = 0
        start.wait()
        for turn in range(runs):
            work, seed = works[(number + turn) % 3], (number * 7 + turn) % 4
            found = work(seed)
            wrong += not all(torch.equal(*pair) for pair in zip(found, alone[work, seed], strict=True))
        return wrong

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(visitor, range(8))) == [0] * 8


def test_a_recording_hears_nothing_of_the_same_model_in_another_thread():
    """The first failure of a sketch: points of the stream of somebody else's run."""
    model = GPT()
    inside, go_on = threading.Event(), threading.Event()

    def other():
        inside.wait(10)
        with torch.no_grad():
            model(ids(3, 5, seed=9))
        go_on.set()

    thread = threading.Thread(target=other)
    thread.start()
    with torch.no_grad(), vf.recording(model) as trace:
        x = model.wte(ids()) + model.wpe(torch.arange(7))
        x = model.h[0](x)
        inside.set()
        go_on.wait(10)
        model.h[1](x)
    thread.join()
    assert [point.name for point in trace.points] == ["h", "h.0", "h.1"]
    assert len(trace.calls) == 2
    assert not trace.escaped


def test_a_plain_run_goes_on_while_recordings_begin_and_end():
    """The second: hooks that were taken off while another thread ran them."""
    model, stop, failed = encoder(), threading.Event(), []
    x = torch.randn(1, 5, 16)

    def other():
        try:
            with torch.no_grad():
                while not stop.is_set():
                    model(x)
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        for _ in range(30):
            assert len(vf.record(model, x).calls) == 2
    finally:
        stop.set()
        thread.join()
    assert not failed


def test_nothing_of_the_process_or_the_model_is_switched():
    """The third: a fast path that stayed off, and whatever else belongs to everybody."""
    import torch._dynamo.eval_frame as frame
    import torch.nn.functional as F

    model = GPT()
    before = (
        torch.backends.mha.get_fastpath_enabled(),
        frame._stance,
        F.multi_head_attention_forward,
        dict(vars(model)),
    )
    with vf.recording(model):
        model(ids())
        within = (torch.backends.mha.get_fastpath_enabled(), frame._stance, F.multi_head_attention_forward)
    assert within == before[:3]
    after = (torch.backends.mha.get_fastpath_enabled(), frame._stance, F.multi_head_attention_forward)
    assert after == before[:3]
    hooks = [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()]
    for _ in range(3):
        vf.record(model, ids())
    assert [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()] == hooks
    assert set(hooks) == {2}


def test_a_model_that_is_forgotten_takes_its_fused_path_again(monkeypatch):
    model, x, fused = encoder(), torch.randn(1, 5, 16), []
    own = torch._transformer_encoder_layer_fwd
    monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", lambda *args: fused.append(1) or own(*args))
    with torch.no_grad():
        before = model(x)
        assert fused == [1, 1]
        vf.record(model, x)
        model(x)
        assert fused == [1, 1]
        mine = model.layers[0].register_forward_hook(lambda *_: None)
        forget(model)
        assert list(model.layers[0]._forward_hooks) == [mine.id]
        mine.remove()
        assert torch.equal(model(x), before)
    assert fused == [1, 1, 1, 1]
    assert not any(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())
    assert vf.record(model, x).sites


def test_an_edit_ends_with_its_recording():
    model = GPT()
    alone = vf.record(model, ids()).output
    with torch.no_grad(), vf.recording(model, edits=[HeadEdit("h.0.attn", z=0.0)]):
        assert not torch.equal(model(ids()), alone)
    with torch.no_grad():
        assert torch.equal(model(ids()), alone)


def test_a_model_that_raises_leaves_the_thread_ready():
    model = GPT()
    with pytest.raises(IndexError):
        vf.record(model, torch.tensor([[999]]))
    assert vf.record(model, ids()).n_runs == 1


def test_recordings_do_not_nest():
    model = GPT()
    with vf.recording(model), pytest.raises(TraceError, match="records already"), vf.recording(GPT()):
        pass
    assert vf.record(model, ids()).sites


class InThread(GPT):
    """Runs in a thread of its own: all of it, or each block's attention, which writes where room was made."""

    def __init__(self, whole):
        super().__init__()
        self.whole = whole

    def forward(self, given):
        with ThreadPoolExecutor(1) as pool:
            if self.whole:
                return pool.submit(super().forward, given).result()
            x = self.wte(given) + self.wpe(torch.arange(given.shape[1]))
            room = torch.empty_like(x)
            for block in self.h:
                pool.submit(lambda block=block, x=x: room.copy_(block.attn(x))).result()
                x = x + room
            return self.lm_head(self.ln_f(x))


@pytest.mark.parametrize(
    ("whole", "said"),
    [
        (
            True,
            ["InThread hands back numbers that no call of this thread made: what another thread computes is not seen"],
        ),
        (False, [f"h.{n}.attn runs in a thread of its own, which is not followed" for n in (0, 1)]),
    ],
)
def test_attention_in_a_thread_of_the_models_own_is_named(whole, said):
    trace = vf.record(InThread(whole), ids())
    assert not trace.sites
    assert [str(one) for one in trace.escaped] == said
    with pytest.raises(TraceError, match="No attention was seen while InThread ran.*" + said[0]):
        trace.as_trace()


class WritesOnly(KINDS["Sdpa"]):
    """A thread runs no module: it writes what it makes of q, k and v into a buffer, or where room was made."""

    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(1, 4, 7, 4))
        self.into, self.threads = "kept", True

    def forward(self, x):
        q, k, v = self.qkv(x)
        room = (
            self.kept if self.into == "kept" else torch.zeros_like(q) if self.into == "like" else torch.empty(q.shape)
        )
        rows = room[:, :, :7]
        with ThreadPoolExecutor(1) as pool:
            if self.threads:
                pool.submit(lambda: rows.copy_(F.scaled_dot_product_attention(q, k, v))).result()
            else:  # each of these is seen
                torch.bmm(torch.softmax(q[0] @ k[0].mT, -1), v[0], out=room[0])
                rows.mul_(2)
                F.relu(room, inplace=True)
                room[:, :, 2:] += 1
        return self.out(room)


@pytest.mark.parametrize("into", ["kept", "like", "new"])
def test_a_thread_that_only_writes_is_named_by_who_reads_it(into):
    model = GPT(WritesOnly)
    for block in model.h:
        block.attn.into = into
    trace = vf.record(model, ids())
    assert not trace.sites
    said = (
        "h.{}.attn reads numbers that no call of this thread wrote: what another thread or a kernel writes is not seen"
    )
    assert [str(one) for one in trace.escaped] == [said.format(n) for n in (0, 1)]
    for block in model.h:
        block.attn.threads = False
    for trace in (vf.record(model, ids()), vf.record(model, ids())):
        assert len(trace.sites) == 2
        assert not trace.escaped
    model.h[0].attn.kept.zero_()  # between two recordings everybody may write
    assert not vf.record(model, ids()).escaped
