"""Path patching: identities, two plain forwards, and the circuit that was built by hand."""

import numpy as np
import pytest

from recipes.handmade_models import INDUCTION, PREVIOUS_TOKEN, induction_by_hand
from tests.analysis.test_patching import CLEAN, CORRUPTED, KINDS_OF_MODEL, TARGET, made
from tests.bundled import load
from vizformer.analysis.causes.ablation import Part
from vizformer.analysis.causes.patching import patch_runs
from vizformer.analysis.causes.path_patching import Receiver, path_edit, path_patch_runs, path_patches
from vizformer.analysis.causes.prompt_pairs import prompt_pair
from vizformer.analysis.heads.maps import kinds, n_layers, site_name
from vizformer.errors import TraceError
from vizformer.model import Edit, Patch

HELD = ("clean", "corrupted")
SENT = [name for name in KINDS_OF_MODEL if "3n" not in name]  # of these the embeddings can be sent along


def run(checkpoint, held: str, *patches: Patch):
    """A plain forward over one of the two prompts."""
    ids = CLEAN if held == "clean" else CORRUPTED
    both = dict(target_ids=TARGET) if checkpoint.model.config.architecture == "encoder-decoder" else {}
    return checkpoint.trace(ids=ids, **both, edit=Edit(patches=patches))


def everything(pair) -> list[Part]:
    return [Part(site) for site in pair.clean.sites]


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("name", SENT)
def test_all_that_can_be_sent_is_the_other_run_and_nothing_sent_is_the_held_one(name: str, held) -> None:
    checkpoint, pair = made(name)
    share = path_patches(checkpoint, pair, [everything(pair)], held=held, embeddings=True)
    assert share == pytest.approx([1.0], abs=1e-4)
    last = Receiver(pair.clean.sites[-1], 1, "q")
    for receivers in ((), (last,)):
        assert path_patches(checkpoint, pair, [[]], receivers, held=held) == pytest.approx([0.0], abs=1e-4)


@pytest.mark.parametrize("name", [name for name in SENT if name != "small Gemma 4"])
@pytest.mark.sample(2)
def test_all_paths_into_heads_are_their_outputs_patched(name: str) -> None:
    """The heads that share a key are patched together, in the last layer: no later one reads its keys as well.

    What layers read of the tokens again is not sent: in the small Gemma 4 these are not all paths.
    """
    checkpoint, pair = made(name)
    for kind in kinds(pair.clean):
        site = site_name(kind, n_layers(pair.clean, kind) - 1)
        record = pair.clean[site]
        heads = [head for head in range(record.n_heads) if record.kv_head(head) == record.kv_head(2)]
        receivers = [Receiver(site, head, part) for head in heads for part in ("q", "k", "v")]
        share = path_patches(checkpoint, pair, [everything(pair)], receivers, held="corrupted", embeddings=True)
        patched = run(checkpoint, "corrupted", *(Patch(f"{site}.z", (head,), record.z(head)) for head in heads))
        assert share == pytest.approx(pair.recovered(patched.logits[None]), abs=1e-4)
        if len(heads) == 1:
            assert share[0] == pytest.approx(patch_runs(checkpoint, pair, "heads", kind).recovered[1, 2], abs=1e-4)


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize(
    ("name", "sender", "receiver"),
    [
        ("translator", Part("encoder.1.self", 3), Receiver("decoder.0.cross", 2, "k")),
        ("translator", Part("decoder.0.cross", 1), Receiver("decoder.1.self", 0, "v")),
        ("LLaMA", Part("decoder.0.self", 3), Receiver("decoder.1.self", 2, "q")),
        ("LLaMA", Part("decoder.0.self", 0), None),
        ("BERT", Part("encoder.0.self", 2), Receiver("encoder.1.self", 1, "k")),
    ],
)
@pytest.mark.sample(3)
def test_a_path_is_two_plain_forwards(name: str, held, sender: Part, receiver: Receiver | None) -> None:
    checkpoint, pair = made(name)
    base, other = (pair.clean, pair.corrupted) if held == "clean" else (pair.corrupted, pair.clean)
    fixed = [
        Patch(f"{site}.z", (head,), (other if Part(site, head) == sender else base)[site].z(head))
        for site in base.sites
        for head in range(base[site].n_heads)
    ]
    patched = run(checkpoint, held, *fixed)
    receivers = () if receiver is None else (receiver,)
    if receiver is not None:
        record = patched[receiver.site]
        head = receiver.head if receiver.input == "q" else record.kv_head(receiver.head)
        value = getattr(record, receiver.input)[head]
        assert not np.allclose(value, getattr(base[receiver.site], receiver.input)[head], atol=1e-4)
        patched = run(checkpoint, held, Patch(f"{receiver.site}.{receiver.input}", (head,), value))
    before, after, there = (float(pair.difference(x.logits.double())) for x in (base, patched, other))
    expected = (before - after) / (before - there)
    kind = "cross" if sender.sublayer.endswith("cross") else sender.sublayer.split(".")[0]
    found = path_patch_runs(checkpoint, pair, kind, receivers, held=held)  # type: ignore[arg-type]
    layer = found.names.index(sender.sublayer)
    assert found.share[layer, sender.head] == pytest.approx(expected, abs=1e-4)
    assert abs(expected) > 1e-3
    again = run(checkpoint, held, *path_edit(checkpoint, pair, [sender], receivers, held=held).patches)
    assert float(pair.difference(again.logits.double())) == pytest.approx(after, abs=1e-4)


@pytest.mark.parametrize("held", HELD)
def test_what_comes_after_the_receiver_sends_it_nothing(held) -> None:
    checkpoint, pair = made("translator")
    early = Receiver("decoder.0.self", 1, "k")
    for kind in ("decoder", "cross"):
        share = path_patch_runs(checkpoint, pair, kind, [early], held=held).share  # type: ignore[arg-type]
        np.testing.assert_allclose(share, 0.0, atol=1e-4)
    assert (
        np.abs(path_patch_runs(checkpoint, pair, "encoder", [Receiver("decoder.0.cross", 1, "v")]).share).max() > 0.01
    )
    within = path_patch_runs(checkpoint, pair, "encoder", [Receiver("encoder.1.self", 1, "v")], held=held).share
    np.testing.assert_allclose(within[1], 0.0, atol=1e-4)
    assert np.abs(within[0]).max() > 1e-3


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_circuit_built_by_hand_is_one_path_into_the_key_of_its_induction_head(held, seed: int) -> None:
    """The previous-token head alone, and the key alone; its answer goes from the induction head to the logits alone."""
    checkpoint = load("induction-by-hand") if seed == 0 else induction_by_hand(seed)
    pair = prompt_pair(checkpoint, "c d f e c", "f d c e c")
    layer, head = INDUCTION
    for part, whole in (("k", PREVIOUS_TOKEN), ("q", None), ("v", None), (None, INDUCTION)):
        receivers = [] if part is None else [Receiver(f"decoder.{layer}.self", head, part)]  # type: ignore[arg-type]
        share = path_patch_runs(checkpoint, pair, "decoder", receivers, held=held).share
        for place, found in np.ndenumerate(share):
            assert found == pytest.approx(1.0 if place == whole else 0.0, abs=0.05), (part, place)
    noise = [Receiver("decoder.1.self", other, part) for other in (0, 1, 3) for part in ("q", "k", "v")]  # type: ignore[arg-type]
    assert np.abs(path_patch_runs(checkpoint, pair, "decoder", noise, held=held).share).max() < 0.05


def test_what_is_not_there_is_refused_and_what_heard_raises_ends_it() -> None:
    checkpoint, pair = made("LLaMA")
    for receiver in (Receiver("decoder.1.self", 4, "q"), Receiver("decoder.9.self", 0, "q"), Receiver("x", 0, "k")):
        with pytest.raises(TraceError, match=r"no head 4|no attention site"):
            path_patch_runs(checkpoint, pair, "decoder", [receiver])
    with pytest.raises(TraceError, match="no cross attention"):
        path_patch_runs(checkpoint, pair, "cross")
    for sender in (Part("decoder.0.feedforward"), Part("decoder.0.self", 4)):
        with pytest.raises(TraceError, match=r"no attention site|no head 4"):
            path_patches(checkpoint, pair, [[sender]])

    def stop(done: int, of: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        path_patch_runs(checkpoint, pair, "decoder", heard=stop)
