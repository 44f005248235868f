"""The scan names the heads that were set by hand, and no others; its sentences say what the library says."""

import numpy as np
import pytest
from click.testing import CliRunner

from recipes.handmade_models import INDUCTION, PREVIOUS_TOKEN, WORKING, induction_by_hand, task_by_hand
from tests import tiny
from tests.bundled import load
from vizformer.analysis import head_maps, logit_attribution
from vizformer.analysis.attribution.direct import by_key
from vizformer.analysis.attribution.finding_words import address, sentence
from vizformer.analysis.attribution.findings import SHARE, scan
from vizformer.analysis.causes.ablation import Part, parts_of, without, without_layer
from vizformer.analysis.heads.maps import site_name
from vizformer.cli import main
from vizformer.errors import TraceError

RANDOM = {(layer, head) for layer in (0, 1) for head in range(4)} - {PREVIOUS_TOKEN, INDUCTION}


@pytest.mark.sample(4)
@pytest.mark.parametrize("text", ["abcdabc", "qwertyqwe", "xyzxyzx", "mnopqmno"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_induction_head_is_named_and_no_random_head_is(text, seed):
    checkpoint = induction_by_hand(seed)
    trace = checkpoint.trace(text)
    findings = list(scan(checkpoint, trace))
    found = {finding.what: finding for finding in findings}
    induction = found["induction"]
    assert (induction.layer, induction.head) == INDUCTION
    key = induction.values["key"]
    tokens = trace.tokens["decoder"]
    assert tokens[key].text == induction.values["answer"]
    assert tokens[key - 1].id == tokens[-1].id
    assert (found["part"].layer, found["part"].head) == INDUCTION
    assert (found["reads"].layer, found["reads"].head, found["reads"].query) == (*PREVIOUS_TOKEN, key)
    assert found["settles"].layer == 1
    needed = {(f.layer, f.head) for f in findings if f.what == "needed"}
    assert needed == {INDUCTION, PREVIOUS_TOKEN}
    named = {(f.layer, f.head) for f in findings if f.head is not None and f.what != "sink"}
    assert not named & RANDOM


def test_where_a_letter_is_new_nothing_is_copied():
    checkpoint = induction_by_hand()
    found = [finding.what for finding in scan(checkpoint, checkpoint.trace("abcdef"))]
    assert not {"induction", "copies", "reads"} & set(found)


def test_a_head_that_copies_from_a_place_is_no_induction_head():
    checkpoint = task_by_hand("copy")
    trace = checkpoint.trace("hgfedcba>hg")
    found = {finding.what: finding for finding in scan(checkpoint, trace)}
    copies = found.get("copies") or found["induction"]  # (in a copy what went before is what went before there as well)
    assert (copies.layer, copies.head) == WORKING
    trace = task_by_hand("reverse").trace("hgfedcba>ab")
    found = {finding.what: finding for finding in scan(task_by_hand("reverse"), trace)}
    assert (found["copies"].layer, found["copies"].head) == WORKING
    assert found["copies"].values["key"] == 6


@pytest.mark.slow
@pytest.mark.sweep
def test_the_numbers_are_those_of_the_attribution():
    checkpoint = load("zh-en")
    trace = checkpoint.trace("我有一只猫。")
    for position in range(len(trace.logits)):
        token = int(trace.logits[position].argmax())
        terms = logit_attribution(checkpoint, trace, position, token)
        for finding in scan(checkpoint, trace, position):
            if finding.what == "part":
                assert abs(finding.values["value"]) >= SHARE * abs(terms.logit)
                place = f"decoder.{finding.layer}." + ("cross" if finding.kind == "cross" else "self")
                own = [
                    t.value
                    for t in terms.terms
                    if (t.part == "feedforward" and finding.head is None and t.layer == finding.layer)
                    or (t.head == finding.head is not None and t.place == place)
                ]
                assert own == [finding.values["value"]]
            elif finding.what == "layer":
                assert finding.values["value"] == terms.of_layer(finding.layer)
            elif finding.what in ("copies", "induction"):
                place = f"decoder.{finding.layer}." + ("cross" if finding.kind == "cross" else "self")
                assert (
                    finding.values["value"]
                    <= by_key(checkpoint, trace, terms, place, finding.head).clip(0).sum() + 1e-9
                )


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "text"), [("stories", "The boy said that"), ("zh-en", "我有一只猫。")])
def test_what_the_answer_needs_is_what_its_probability_falls_without(model, text):
    checkpoint = load(model)
    trace = checkpoint.trace(text)
    token = int(trace.logits[-1].argmax())

    def p(run):
        return float(run.logits[-1].double().softmax(-1)[token])

    found = scan(checkpoint, trace)
    heads = [finding for finding in found if finding.what == "needed"]
    after = {part: p(without(checkpoint, trace, [part])) for part in parts_of(trace) if part.head is not None}
    enough = sorted(value for value in after.values() if p(trace) - value >= SHARE * p(trace))
    assert [one.values["after"] for one in heads] == pytest.approx(enough[:3])
    for one in heads:
        part = Part(site_name(one.kind, one.layer), one.head)
        assert after[part] == pytest.approx(one.values["after"])
        assert one.values["before"] == pytest.approx(p(trace))
    (layer,) = (finding for finding in found if finding.what == "needed_layer")
    stacks = {part.sublayer.rpartition(".")[0] for part in after}
    left = {name: p(without_layer(checkpoint, trace, name)) for name in stacks}
    least = min(left, key=left.__getitem__)
    assert least == f"{layer.values['stack']}.{layer.layer}"
    assert layer.values["after"] == pytest.approx(left[least])


def test_runs_that_take_too_long_are_said_to_be_left_out(monkeypatch):
    monkeypatch.setattr("vizformer.analysis.attribution.findings.MOST_WORK", 1.0)
    checkpoint = load("induction-by-hand")
    found = {finding.what: finding for finding in scan(checkpoint, checkpoint.trace("abcdabc"))}
    assert "needed" not in found
    assert "10 runs without a head or a layer take too long" in str(sentence(found["unmeasured"]))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("architecture", "options"),
    [
        ("encoder-decoder", tiny.BART),
        ("encoder-decoder", {}),
        ("decoder-only", tiny.GEMMA),
        ("decoder-only", tiny.NEOX),
        ("decoder-only", tiny.OLMO2),
        ("decoder-only", tiny.MIXTRAL),
        ("encoder-only", tiny.BERT),
    ],
)
def test_every_model_and_token_can_be_scanned_and_said(architecture, options):
    checkpoint = tiny.checkpoint(architecture, **options)
    trace = checkpoint.trace("我有一只猫。", target="a cat" if architecture == "encoder-decoder" else None)
    for position in range(len(trace.logits)):
        for token in (None, 9):
            for finding in scan(checkpoint, trace, position, token):
                assert "{" not in str(sentence(finding))
                assert address(finding, {"text": "a"}).startswith(("/lens?text=a", "/attention?text=a&site="))
    with pytest.raises(TraceError, match="no position"):
        scan(checkpoint, trace, 99)
    with pytest.raises(TraceError, match="no token"):
        scan(checkpoint, trace, 0, 10**6)


def test_the_command_says_it_with_addresses():
    run = CliRunner().invoke(main, ["scan", "induction-by-hand", "--text", "abcdabc"])
    assert run.exit_code == 0, run.output
    assert "Layer 1, head 2 copies it, as an induction head does" in run.output
    assert "/attention?model=induction-by-hand&text=abcdabc&site=decoder&layer=1&head=2&query=7" in run.output
    assert "/lens?model=induction-by-hand&text=abcdabc&position=7" in run.output
    run = CliRunner().invoke(main, ["scan", "induction-by-hand", "--text", "abc", "--position", "9"])
    assert run.exit_code == 1
    assert "There is no position 9: choose 0 to 3, or -1 for the last." in run.output


@pytest.mark.sweep
def test_of_a_key_that_many_heads_rest_on_the_head_that_rests_most_is_named():
    checkpoint = load("stories")
    trace = checkpoint.trace("The cat sat on the chair.")
    (sink,) = (finding for finding in scan(checkpoint, trace) if finding.what == "sink")
    maps = head_maps(trace, "decoder")
    key = sink.values["key"]
    received = maps.weights[:, :, key:, key].mean(-1)  # of the rows that may see it
    assert (sink.layer, sink.head) == np.unravel_index(received.argmax(), received.shape)
    assert sink.values["most"] == pytest.approx(received.max(), abs=1e-5)
    assert sink.values["token"] == trace.tokens["decoder"][key].text
