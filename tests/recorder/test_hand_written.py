"""Models in many styles: what is recorded is what the code itself multiplied its values by."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import vizformer as vf
from tests.recorder.hand_written import GPT, KINDS, Additive, Cached, D, Fused, H, Separate, Summed, ids, split
from vizformer.analysis.heads.maps import records_of
from vizformer.errors import TraceError
from vizformer.model import Reason


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", KINDS)
def test_maps_and_z_of_a_style(name, batch):
    model = GPT(KINDS[name])
    with torch.no_grad():
        alone = model(ids(batch))
    trace = vf.record(model, ids(batch))
    assert_close(trace.output, alone, rtol=0, atol=1e-5 if name == "Torch" else 0)  # alone it runs its fast path
    assert not trace.escaped, [str(said) for said in trace.escaped]
    inner = ".inner" if name == "Torch" else ""
    assert trace.sites == tuple(f"h.{layer}.attn{inner}" for layer in range(2))
    for item in range(batch):
        for site, shown in zip(trace.sites, model.maps, strict=True):
            one = trace.of_item(item)[site]
            assert one.n_heads == H
            for head in range(H):
                assert_close(one.pattern(head), shown[item, head], rtol=0, atol=1e-6)
                assert_close(one.z(head), shown[item, head] @ one.v[head], rtol=1e-5, atol=1e-5)
            assert one.is_exact
            record = one.record
            assert (record is None) == (float(shown[item].sum(-1).max()) > 1 + 1e-4)  # of relu alone
            for head in range(H if record else 0):
                assert_close(record.pattern(head), shown[item, head], rtol=0, atol=1e-5)
                assert_close(record.z(head), one.z(head), rtol=1e-4, atol=1e-4)
                if record.scored:
                    assert_close(record.scores(head), one.scores(head), rtol=1e-4, atol=1e-4)
    assert_close(trace.residual("h.1"), _stream(model, ids(batch))[0])


def _stream(model, given):
    x = model.wte(given) + model.wpe(torch.arange(given.shape[1]))
    with torch.no_grad():
        for block in model.h:
            x = block(x)
    return x


def test_scale_cap_and_sinks_are_found():
    found = {
        name: vf.record(GPT(KINDS[name]), ids())["h.1.attn"].record for name in ("Capped", "Sinks", "Alibi", "Separate")
    }
    assert found["Separate"].scale == pytest.approx(0.5)
    assert found["Separate"].position_bias is None
    assert found["Capped"].scoring.cap == pytest.approx(0.7)
    form = vf.record(GPT(KINDS["Sinks"]), ids())["h.1.attn"].forms[0][0]
    assert form.sinks.shape == (H,)
    product = torch.zeros(H, 7, 7, dtype=torch.float64)
    assert form.weights(product).sum(-1).max() < 1
    slope = found["Alibi"].position_bias[0]
    assert_close(slope[3, :4], torch.tensor([-1.5, -1.0, -0.5, 0.0]))


def test_reasons_are_said_where_the_form_of_the_mask_proves_them():
    causal, window = (vf.record(GPT(KINDS[name]), ids())["h.0.attn"].record for name in ("Separate", "Window"))
    assert set(causal.reason(0).flatten().tolist()) == {0, int(Reason.FUTURE)}
    assert set(window.reason(0).flatten().tolist()) == {0, int(Reason.OF_THE_MODEL)}
    assert vf.record(GPT(KINDS["Flattened"]), ids())["h.0.attn"].record.bias is None


def test_sinks_go_through_a_file_and_into_every_picture(tmp_path):
    model = GPT(KINDS["Sinks"])
    trace = vf.record(model, ids()).as_trace()
    trace.save(tmp_path / "trace.safetensors")
    again = vf.open_trace(tmp_path / "trace.safetensors")
    heads = vf.analysis.TraceHeads(records_of(again, "decoder"))
    for layer, shown in enumerate(model.maps):
        assert_close(again[f"decoder.{layer}.self"].pattern(3), shown[0, 3], rtol=0, atol=1e-6)
        assert heads.operands(layer, 3) is None  # the browser does not compute such a map itself
        received = heads.overview(layer).measures.received[0]
        assert_close(torch.tensor(received), shown[0].mean(1), rtol=0, atol=1e-5)
        assert vf.analysis.pair_terms(trace, f"decoder.{layer}.self", 3, 4, 2).proof.holds


def test_weights_that_are_no_softmax_are_a_record_without_scores(tmp_path):
    model = GPT(KINDS["ReluAttention"])
    for layer in model.h:
        layer.attn.wq.weight.data *= 0.1  # so that no row sums to more than 1
        layer.attn.wq.bias.data *= 0.1
    trace, kept = vf.record(model, ids()).as_trace(), tmp_path / "trace.safetensors"
    trace.save(kept)
    with pytest.raises(TraceError, match="no scores"):
        vf.open_trace(kept)["encoder.0.self"].scores(0)
    for site, shown in zip(trace.sites, model.maps, strict=True):
        record = trace[site]
        assert float(shown.sum(-1).max()) < 1
        assert not record.scored
        for head in range(H):
            assert_close(record.pattern(head), shown[0, head], rtol=0, atol=1e-6)
        with pytest.raises(TraceError, match="no scores"):
            record.scores(0)
        assert_close(vf.open_trace(kept)[site].pattern(1), record.pattern(1))
        assert record.reason_map is None or set(record.reason(0).flatten().tolist()) <= {0, int(Reason.FUTURE)}


def test_layers_keep_one_mask_and_no_numbers_for_what_is_not_there():
    trace = vf.record(GPT(), ids()).as_trace()
    first, second = (trace[site] for site in trace.sites)
    assert first.bias is second.bias
    assert first.bias.shape == (1, 7, 7)
    assert first.position_bias is None


def test_layers_with_other_numbers_of_heads_are_one_trace(tmp_path):
    model = GPT()
    model.h[1].attn = KINDS["Separate"]()

    class Two(type(model.h[1].attn)):
        def forward(self, x):
            q, k, v = (f(x).unflatten(-1, (2, -1)).transpose(1, 2) for f in (self.wq, self.wk, self.wv))
            p = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
            return self.out(self.keep(p) @ v)

    model.h[1].attn = Two().eval()
    trace = vf.record(model, ids()).as_trace()
    trace.save(tmp_path / "trace.safetensors")
    assert [vf.open_trace(tmp_path / "trace.safetensors")[site].n_heads for site in trace.sites] == [H, 2]
    assert [trace[site].n_heads for site in trace.sites] == [H, 2]
    heads = vf.analysis.TraceHeads(records_of(trace, "encoder"))
    assert heads.shape == (2, H, 7, 7)
    assert_close(torch.tensor(heads.pattern(1, 1)), model.h[1].attn.shown[-1][0, 1])
    assert not heads.pattern(1, 2).any()  # a head that this layer does not have sees nothing
    assert not heads.small(1)[0][2:].any()


class Shared(GPT):
    """Its first block runs three times."""

    def forward(self, given):
        x = self.wte(given) + self.wpe(torch.arange(given.shape[1]))
        for _ in range(3):
            x = self.h[0](x)
        return self.lm_head(self.ln_f(x))


def test_the_stream_of_blocks_that_run_again_is_told_apart():
    model = Shared()
    model.h = model.h[:1]
    trace = vf.record(model, ids()).as_trace()
    assert trace.sites == ("decoder.0.self", "decoder.1.self", "decoder.2.self")
    with torch.no_grad():
        x = model.wte(ids()) + model.wpe(torch.arange(7))
        assert torch.equal(trace.residual("decoder.0.pre"), x[0])
        assert torch.equal(trace.residual("decoder.2.pre"), model.h[0](model.h[0](x))[0])


def test_padding_is_a_key_that_no_query_sees():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 24, batch_first=True), 2).eval()
    x, hidden = torch.randn(2, 6, 16), torch.zeros(2, 6, dtype=torch.bool)
    hidden[1, 4:] = True
    reason = vf.record(model, x, src_key_padding_mask=hidden).of_item(1)["layers.1.self_attn"].record.reason(0)
    assert reason[:, 4:].eq(int(Reason.PADDING)).all()
    assert not reason[:, :4].any()


@pytest.mark.parametrize("batch_first", [True, False])
def test_transformer_of_torch_encodes_and_decodes(batch_first):
    torch.manual_seed(2)
    model = nn.Transformer(16, 4, 2, 2, 24, batch_first=batch_first).eval()
    source, target = torch.randn(3, 7, 16), torch.randn(3, 5, 16)
    given = (source, target) if batch_first else (source.transpose(0, 1), target.transpose(0, 1))
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1)
    trace = vf.record(model, *given, tgt_mask=mask).with_tokens("abcdefg", "vwxyz").of_item(1)
    assert [one.is_cross for one in trace.attention] == [False, False, False, True, False, True]
    cross = trace["decoder.layers.1.multihead_attn"]
    assert cross.tokens == (tuple("vwxyz"), tuple("abcdefg"))
    own = model.decoder.layers[0].self_attn
    with torch.no_grad():
        _, maps = (
            own(target, target, target, attn_mask=mask, average_attn_weights=False)
            if batch_first
            else own(*[given[1]] * 3, attn_mask=mask, average_attn_weights=False)
        )
    assert_close(trace["decoder.layers.0.self_attn"].maps(), maps[1], rtol=0, atol=1e-6)
    assert all(one.is_exact for one in trace.attention)
    assert trace.residual("decoder.layers.1").shape == (5, 16)
    app = trace.as_trace()
    assert app.sites == (
        "encoder.0.self", "encoder.1.self", "decoder.0.self", "decoder.0.cross", "decoder.1.self", "decoder.1.cross"
    )  # fmt: skip


@pytest.mark.parametrize("attention", [Additive, Summed])
def test_attention_without_a_product_of_queries_and_keys_is_named(attention):
    trace = vf.record(GPT(attention), ids())
    assert not trace.sites
    assert {str(said).partition(" at ")[2].split()[0] for said in trace.escaped} == {"h.0.attn", "h.1.attn"}


@pytest.mark.filterwarnings("ignore")
def test_traced_code_is_named():
    model = GPT()
    model.h[1].attn = torch.jit.trace(model.h[1].attn, torch.randn(1, 7, 16), check_trace=False)
    trace = vf.record(model, ids())
    assert trace.sites == ("h.0.attn",)
    assert "h.1.attn is TorchScript, whose inside is not seen" in [str(said) for said in trace.escaped]


def test_compiled_modules_are_refused():
    with pytest.raises(TraceError, match="compiled"):
        vf.record(torch.compile(GPT()), ids())


def test_dropout_on_weights_is_refused_in_training():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 24, dropout=0.3, batch_first=True), 2).train()
    with pytest.raises(TraceError, match=r"model\.eval\(\)"):
        vf.record(model, torch.randn(1, 5, 16))
    assert vf.record(model.eval(), torch.randn(1, 5, 16)).sites  # the thread records again


def test_vmap_is_refused():
    model, x = GPT(), torch.randn(3, 1, 7, 16)
    with pytest.raises(TraceError, match="vmap"), vf.recording(model.h[0]):
        torch.vmap(model.h[0].attn)(x)


def test_checkpointed_blocks_count_once():
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(GPT):
        def forward(self, given):
            x = self.wte(given) + self.wpe(torch.arange(given.shape[1]))
            for block in self.h:
                x = checkpoint(block, x, use_reentrant=False)
            return self.lm_head(self.ln_f(x))

    model = Checkpointed()
    with vf.recording(model) as trace:
        model(ids()).sum().backward()
    assert trace.sites == ("h.0.attn", "h.1.attn")
    assert trace.n_runs == 1


def test_gradients_are_those_of_the_run_alone():
    model = GPT()
    model(ids()).pow(2).sum().backward()
    alone = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    with vf.recording(model):
        model(ids()).pow(2).sum().backward()
    assert all(torch.equal(one, parameter.grad) for one, parameter in zip(alone, model.parameters(), strict=True))


def test_masks_are_copied_before_they_change():
    class Refilled(Fused):
        def forward(self, x):
            out = super().forward(x)
            self.bias.fill_(1.0)  # in place, after the map was made
            return out

    model = GPT(Refilled)
    trace = vf.record(model, ids())
    for site, shown in zip(trace.sites, model.maps, strict=True):
        assert_close(trace[site].maps(), shown[0], rtol=0, atol=1e-6)


def test_generation_with_a_cache_keeps_what_each_step_added():
    model, given = Cached(), ids(1, 4)
    with torch.no_grad(), vf.recording(model) as trace:
        made = model.generate(given, 12)
    assert trace.n_runs == 1
    whole = vf.record(GPT(), made[:, :-1])
    for site in ("h.0.attn", "h.1.attn"):
        one, at_once = trace[site], whole[site]
        assert (one.n_q, one.n_k) == (15, 15)
        assert_close(one.maps(), at_once.maps(), rtol=0, atol=1e-5)
        assert_close(one.record.pattern(2), at_once.pattern(2), rtol=0, atol=1e-5)
        assert_close(one.z(1), at_once.z(1), rtol=0, atol=1e-4)
        assert one.is_exact
    assert_close(trace.residual("h.1"), whole.residual("h.1"), rtol=0, atol=1e-4)
    assert trace.as_trace().sites == ("decoder.0.self", "decoder.1.self")
    assert trace.nbytes < 2 * whole.nbytes  # with all keys and values of all 12 steps it were some 6 times as much


def test_a_memory_that_was_made_before_is_read_by_every_step_of_a_generation():
    """Whisper: its encoder ran before, and each layer keeps the keys and values that it made of it."""

    class Reads(nn.Module):
        def __init__(self, attention):
            super().__init__()
            self.ln, self.attn, self.cross, self.kept = nn.LayerNorm(D), attention(), Separate(), None

        def forward(self, x):
            x = x + self.attn(self.ln(x))
            q = split(self.cross.wq(x))
            self.kept = self.kept or tuple(split(f(memory)) for f in (self.cross.wk, self.cross.wv))
            return x + self.cross.out(nn.functional.scaled_dot_product_attention(q, *self.kept))

    memory = torch.randn(1, 9, D, generator=torch.Generator().manual_seed(3))
    model, whole = Cached(), GPT()
    for one, attention in ((model, type(model.h[0].attn)), (whole, Separate)):
        torch.manual_seed(8)
        one.h = nn.ModuleList(Reads(attention) for _ in range(2))
    with torch.no_grad(), vf.recording(model) as trace:
        model.step(ids(1, 4), 0)
        for at in range(4, 7):
            model.step(ids()[:, at : at + 1], at)
    assert trace.n_runs == 1
    at_once = vf.record(whole, torch.cat([ids(1, 4), ids()[:, 4:]], 1))
    for block in (0, 1):
        reads, attends = (f"h.{block}{name}" for name in ("", ".attn"))
        assert [(trace[site].n_q, trace[site].n_k) for site in (attends, reads)] == [(7, 7), (7, 9)]
        for site in (attends, reads):
            assert_close(trace[site].maps(), at_once[site].maps(), rtol=0, atol=1e-5)


def test_a_model_that_runs_several_times_keeps_all_runs():
    model = GPT()
    with torch.no_grad(), vf.recording(model) as trace:
        for seed in range(3):
            model(ids(seed=seed))
    assert trace.n_runs == 3
    with pytest.raises(TraceError, match="ran 3 times"):
        trace["h.0.attn"]
    for seed in range(3):
        alone = vf.record(model, ids(seed=seed))["h.1.attn"]
        assert torch.equal(trace.runs("h.1.attn")[seed].maps(), alone.maps())
        assert torch.equal(trace.run(seed)["h.1.attn"].q, alone.q)


def test_a_layer_that_is_used_several_times_keeps_all_calls():
    model = Shared()
    trace = vf.record(model, ids())
    assert trace.sites == ("h.0.attn",)
    assert len(trace.runs("h.0.attn")) == 3
    for one, shown in zip(trace.runs("h.0.attn"), model.h[0].attn.shown[-3:], strict=True):
        assert_close(one.maps(), shown[0], rtol=0, atol=1e-6)


def test_what_is_no_module_is_refused():
    with pytest.raises(TraceError, match=r"no torch\.nn\.Module"):
        vf.record(lambda x: x, ids())


def test_a_site_or_head_that_is_not_there_is_named():
    trace = vf.record(GPT(), ids())
    with pytest.raises(TraceError, match=r"h\.0\.attn, h\.1\.attn"):
        trace["h.9.attn"]
    with pytest.raises(TraceError, match="choose 0 to 3"):
        trace["h.0.attn"].pattern(4)


def test_view_draws_a_recorded_trace(tmp_path):
    trace = vf.record(GPT(), ids()).with_tokens("abcdefg")
    assert "GPT · h.0.attn … h.1.attn" in vf.view(trace)._repr_html_()
    assert len(vf.view(trace["h.0.attn"]).query_tokens) == 7
    assert "h.1" in vf.view(trace, site="h.1").html
    with pytest.raises(TraceError, match="no attention weights"):
        vf.view(vf.record(GPT(KINDS["ReluAttention"]), ids()))
    trace.save(tmp_path / "run.safetensors")
    stored = vf.open_trace(tmp_path / "run.safetensors")
    assert stored.sites == ("decoder.0.self", "decoder.1.self")
    for layer in range(2):
        for head in range(H):
            mine = trace[f"h.{layer}.attn"].pattern(head)
            assert_close(stored[f"decoder.{layer}.self"].pattern(head), mine, rtol=0, atol=1e-6)
    assert [token.text for token in stored.tokens["decoder"]] == list("abcdefg")
    with pytest.raises(TraceError, match="returned nothing called logits"):
        stored.logits  # noqa: B018
    assert "GPT" in vf.view(tmp_path / "run.safetensors")._repr_html_()


def test_the_page_from_other_programs_reads_what_was_saved(tmp_path):
    from vizformer.analysis.other_programs.attention_arrays import PAGE, Tokens
    from vizformer.analysis.other_programs.attention_files import read_attention

    torch.manual_seed(4)
    model = nn.Transformer(16, 4, 2, 2, 24, batch_first=True).eval()
    trace = vf.record(model, torch.randn(1, 6, 16), torch.randn(1, 4, 16)).with_tokens("abcdef", "wxyz")
    trace.save(path := tmp_path / "run.safetensors")
    kinds = read_attention(path.name, path.read_bytes(), Tokens((), ()), PAGE)
    assert len(kinds) == 3
    cross = next(found for found in kinds.values() if found.shape[2:] == (4, 6))
    for layer in range(2):
        mine = trace[f"decoder.layers.{layer}.multihead_attn"]
        for head in range(H):
            assert_close(torch.tensor(cross.pattern(layer, head)), mine.pattern(head), rtol=0, atol=1e-6)
    assert (list(cross.query_tokens), list(cross.key_tokens)) == (list("wxyz"), list("abcdef"))
