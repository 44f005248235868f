"""A text, or a number of the author's, decides between the answers to what bare weights do not say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import vizformer as vf
from tests import conventions, handmade_models, tiny
from tests.trained_models import HIDES, PAIRS, TEXT, file, of_ids, rounds, weights
from vizformer.checkpoints import load, weighing
from vizformer.checkpoints.weighing import material
from vizformer.checkpoints.weighing.author import printed
from vizformer.errors import CheckpointError, TokenizerError, TraceError

LECTURE = dict(causal=True, scaled_embedding=False, norm_eps=1e-5, score_scale="root_of_d_model")
COURSE: dict[str, Any] = dict(n_heads=4, norm_order="post", norm="layer_norm", scaled_embedding=False, norm_eps=1e-12)
COURSE |= dict(activation="relu", score_scale="root_of_d_head", bos_id=1, eos_id=2)
CLOZE = dict(n_heads=4, norm_order="post", activation="relu", scaled_embedding=False, causal=False)
SHORT = "3 14 7 9 3 14 7 9"


def saved(content: Any, path: Path) -> Path:
    torch.save(content, path)
    return path


def untrained() -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    model = handmade_models.MODELS["attention only"].make()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model.state_dict()


@pytest.mark.sweep
def test_a_text_says_that_scores_are_divided_by_the_root_of_the_whole_width(tmp_path: Path) -> None:
    """Wrong answers to two questions: both are found, what makes no difference stays open, and `load` takes the rest."""
    path = saved(weights("attention_only"), tmp_path / "model.pt")
    heard: list[tuple[int, int]] = []
    found = vf.evidence(
        path, TEXT, heard=lambda *how_far: heard.append(how_far), **LECTURE | dict(score_scale="nothing", causal=True)
    )
    assert all(LECTURE.get(name, answer) == answer for name, answer in found.settled.items())
    assert {"scaled_embedding", "score_scale"} <= found.settled.keys()
    assert found.why_not is None
    assert found.complete
    assert found.best < found.before < found.counting
    assert "norm_eps" not in found.settled
    assert heard[-1][0] == len(heard) == found.combinations
    assert "score_scale = root_of_d_model" in str(found)
    assert "stays open" in str(found)

    opened = vf.load(path, **found.answers)
    assert opened.report.taken["score_scale"] == "evidence"
    assert "norm_eps" in opened.report.assumed
    assert not found.settled.keys() & opened.report.assumed.keys()
    assert any("decided by a text" in str(said) for said in opened.report.assumptions)
    assert opened.trace(ids=[3, 4, 5]).logits.equal(load(path, **LECTURE).trace(ids=[3, 4, 5]).logits)


@pytest.mark.sweep
def test_pairs_decide_for_an_encoder_decoder() -> None:
    path = file("copying")
    wrong = dict(n_heads=8, norm="deviation_norm", score_scale="root_of_d_model")
    found = vf.evidence(path, PAIRS, **COURSE | wrong)
    assert found.complete
    assert all(COURSE.get(name, answer) == answer for name, answer in found.settled.items())
    assert {"n_heads", "norm_order", "norm", "scaled_embedding", "score_scale"} <= found.settled.keys()
    assert "norm_eps" not in found.settled


@pytest.mark.sweep
def test_hidden_tokens_decide_for_an_encoder(tmp_path: Path) -> None:
    path = saved(weights("cloze"), tmp_path / "model.pt")
    text = of_ids(rounds(20, 99_999))
    with pytest.raises(TraceError, match="which token id hides one"):
        vf.evidence(path, text, **CLOZE)
    with pytest.raises(TraceError, match="no token 23"):
        vf.evidence(path, text, mask_id=23, **CLOZE)
    found = vf.evidence(path, text, mask_id=HIDES, **CLOZE | dict(n_heads=2))
    assert {"n_heads": 4, "norm_order": "post", "causal": False}.items() <= found.settled.items()
    assert found.tokens == 240


@pytest.mark.sweep
def test_nothing_is_proposed_of_a_model_that_has_learned_nothing(tmp_path: Path) -> None:
    """Its losses differ clearly, as random logits of other sizes do; that says nothing of its author."""
    path = saved(untrained(), tmp_path / "model.pt")
    answers = LECTURE | dict(score_scale="root_of_d_head")
    found = vf.evidence(path, TEXT, **answers)
    assert found.settled == {}
    assert "counting its tokens" in str(found.why_not)
    assert any(one.difference > 3 * one.error > 0 for one in found.findings)
    assert answers.items() <= found.answers.items()
    assert LECTURE.keys() <= vf.load(path, **found.answers).report.assumed.keys()


@pytest.mark.sweep
def test_no_answer_is_weighed_under_which_logits_mean_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighing.text_evidence, "MOST_COMBINATIONS", 40)  # one answer at a time, and a few pairs
    model = tiny.randomise(handmade_models.Hooked(outputs=handmade_models.V - 1))
    path, said = saved(model.state_dict(), tmp_path / "model.pt"), dict(activation="relu", outputs_are_tokens=True)
    found = vf.evidence(path, TEXT, **said)
    (finding,) = [one for one in found.findings if one.question.name == "outputs_are_tokens"]
    assert (finding.answer, finding.rival, finding.settled) == (True, None, False)
    assert "outputs_are_tokens = True: no other answer makes another model that predicts tokens" in str(found)


@pytest.mark.sweep
@pytest.mark.parametrize("as_logits", [True, False])
def test_the_authors_number_decides_of_an_untrained_model_too(
    tmp_path: Path, as_logits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(untrained(), tmp_path / "model.pt")
    author = handmade_models.MODELS["attention only"].make()
    author.load_state_dict(untrained())
    ids = torch.tensor([[int(id) for id in SHORT.split()]])
    with torch.no_grad():
        logits = author(ids)[0]
    loss = torch.nn.functional.cross_entropy(logits[:-1], ids[0, 1:])
    number = str(logits[-1, :5]) if as_logits else f"{loss:.5f}"
    found = vf.evidence(path, SHORT, author=number, **LECTURE | dict(score_scale="root_of_d_head", causal=True))
    assert found.by_author
    right = {"causal": True, "scaled_embedding": False, "score_scale": "root_of_d_model"}
    assert right.items() <= found.settled.items()
    monkeypatch.setattr(weighing.text_evidence, "MOST_COMBINATIONS", 40)  # one answer at a time, and a few pairs
    wrong = vf.evidence(path, SHORT, author="1.23456", **LECTURE)
    assert wrong.settled == {}
    assert "has the author's number to its printed digits" in str(wrong.why_not)


@pytest.mark.sweep
def test_the_authors_number_says_that_there_are_no_norms(tmp_path: Path) -> None:
    """What norms leave open is not said where they are taken away, or nothing would open."""
    kind = conventions.KINDS["no norms"]
    author, ids = conventions.made("no norms"), [int(id) for id in SHORT.split()]
    with torch.no_grad():
        logits = author(torch.tensor([ids]))[0, -1]
    wrong = dict(norm="rms_norm", norm_order="pre", final_norm=True)
    found = vf.evidence(
        saved(author.state_dict(), tmp_path / "model.pt"), SHORT, author=str(logits[:6]), **kind.strict | wrong
    )
    assert found.settled["norm"] == "none"


def test_a_number_is_met_to_its_printed_digits() -> None:
    said = printed("tensor([ 0.1234, -2.5000,  1.0e-02])", 23)
    assert said.is_met(np.array([0.12344, -2.49996, 0.0104]))
    assert not said.is_met(np.array([0.12354, -2.5, 0.01]))
    assert printed(torch.tensor([0.1, 0.2, 0.3]), 23).is_met(np.array([0.1, 0.2, 0.3]))  # type: ignore[arg-type]
    assert printed(list(np.float32([0.1, 0.2, 0.3])), 23).is_met(np.array([0.1, 0.2, 0.3]))
    assert printed(1.4697, 23).is_met(np.array([1.46973]))
    assert printed("1.4697", 23).is_chance([np.linspace(1, 2, 400)[:, None][i] for i in range(400)])


@pytest.mark.parametrize(
    ("text", "more", "error", "words"),
    [
        (SHORT, {}, TraceError, "has 7 tokens for the model to predict; at least 200"),
        (" ", {}, TraceError, "no text yet"),
        ("3 " * 50_000, {}, TraceError, "100,000 characters"),
        ("3 4 99 " * 100, {}, TokenizerError, '"99" is none'),
        ("once upon a time", {}, TokenizerError, "token ids from 0 to 22"),
        (SHORT, dict(author="2.3"), TraceError, "2.3 has 2 digits"),
        (SHORT, dict(author="no number"), TraceError, "0 numbers were found"),
        (SHORT, dict(author="1.0000 2.0000"), TraceError, "2 numbers were found"),
        (SHORT, dict(author="1.0 " * 24), TraceError, "24 numbers were found"),
        (SHORT, dict(author="9e999 1.0 1.0"), TraceError, "3 numbers were found"),
        (SHORT, dict(author="1" * 5_000), TraceError, "5,000 characters"),
        (TEXT, dict(author="1.4697"), TraceError, "in one piece: of 12 tokens; this one has 1,800"),
        (TEXT, dict(n_heads=8), CheckpointError, "n_heads=8: the tensors say 4"),
    ],
)
def test_bounds_get_words(tmp_path: Path, text: str, more: dict[str, Any], error: type[Exception], words: str) -> None:
    path = saved(weights("attention_only"), tmp_path / "model.pt")
    with pytest.raises(error, match=words):
        vf.evidence(path, text, **LECTURE, **more)


@pytest.mark.parametrize("text", ["3 4 5", "3 4 5\t", "\t3 4 5", f"{PAIRS}\n3 4"])
def test_an_encoder_decoder_needs_pairs(tmp_path: Path, text: str) -> None:
    path = saved(handmade_models.MODELS["gamma and beta"].make().state_dict(), tmp_path / "model.pt")
    with pytest.raises(TraceError, match="a pair in each line"):
        vf.evidence(path, text, **COURSE)


def test_a_model_that_says_itself_what_it_is_has_nothing_to_decide() -> None:
    with pytest.raises(TraceError, match="Nothing is open"):
        vf.evidence("stories", TEXT)


def test_time_and_number_are_bounded(tmp_path: Path) -> None:
    """What was not compared is not decided."""
    path = saved(weights("attention_only"), tmp_path / "model.pt")
    found = vf.evidence(path, TEXT, most_seconds=-1, **LECTURE)
    assert found.settled == {}
    assert not found.complete
    assert found.combinations == 1
    assert "\n  one of these fits: better than counting the tokens by +" in str(found)
    nothing = vf.evidence(saved(untrained(), path), TEXT, most_seconds=-1, **LECTURE)
    assert "\n  none of these fits: better than counting the tokens by -" in str(nothing)
    assert nothing.over_counting is not None
    assert nothing.over_counting.difference == pytest.approx(nothing.counting - nothing.best)


@pytest.mark.parametrize("name", [None, "norms after the sum", "not scaled"])
@pytest.mark.sample(1)
def test_evidence_speaks_against_the_names_of_a_known_code(name: str | None, tmp_path: Path) -> None:
    """Also what the names say is tried; where it holds, the model stays that of the names."""
    fork = conventions.FORKS[name] if name else conventions.fork({})
    model, ids = tiny.randomise(fork.make()).eval(), [int(id) for id in SHORT.split()]
    path = saved(model.state_dict(), tmp_path / "model.pt")
    with torch.no_grad():
        logits = model(torch.tensor([ids]))[0, -1].tolist()
    found = vf.evidence(path, SHORT, author=logits, n_heads=4, activation="gelu")
    opened = vf.load(path, **found.answers)
    assert opened.report.family == ("hand-written" if name else "nanoGPT / minGPT")
    assert ("known_code" in found.answers) is (name is not None)
    tiny.assert_close(opened.trace(ids=ids).logits[-1], torch.tensor(logits))
    settled = {"norms after the sum": "norm_order", "not scaled": "score_scale", None: "activation"}[name]
    assert opened.report.taken[settled] == "evidence"


@pytest.mark.sweep
def test_a_text_speaks_against_the_names_of_a_known_code(tmp_path: Path) -> None:
    path = saved(weights("norms_after_the_sum"), tmp_path / "model.pt")
    found = vf.evidence(path, TEXT, n_heads=4, activation="gelu")
    assert found.settled.items() >= {"norm_order": "post", "score_scale": "root_of_d_head", "causal": True}.items()
    assert found.answers["known_code"] is False
    assert found.best < found.before


def test_whoever_listens_can_end_it(tmp_path: Path) -> None:
    path = saved(weights("attention_only"), tmp_path / "model.pt")

    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vf.evidence(path, TEXT, heard=stop, **LECTURE)


def test_every_token_is_hidden_once() -> None:
    checkpoint = vf.load("cloze")
    asked = material.asked(checkpoint, "Once upon a time there was a king. " * 40, None)
    mask = checkpoint.model.config.mask_id
    for start in range(0, len(asked), material.TIMES):
        window = asked[start : start + material.TIMES]
        rows = sorted(row for one in window for row in one.rows)
        assert rows == list(range(1, len(window[0].read) - 1))  # all but the marks at both ends
        assert all(one.read[row] == mask for one in window for row in one.rows)
    assert sum(len(one.rows) for one in asked) >= material.LEAST_TOKENS


def test_the_losses_are_those_of_the_pages() -> None:
    """A short text in one window: as the lesson on the loss computes them."""
    from vizformer.explain.loss_parts import asked_rows, losses

    checkpoint, text = vf.load("stories"), "Once upon a time there was a princess who lived in a castle."
    asked = material.asked(checkpoint, text, None, whole=True)
    trace = checkpoint.trace(text)
    expected = losses(trace, asked_rows(checkpoint, trace)).losses
    np.testing.assert_allclose(material.losses(checkpoint.model, asked), expected, atol=1e-5)


def test_pictures_in_notebooks_say_what_was_assumed(tmp_path: Path) -> None:
    opened = vf.load(saved(weights("attention_only"), tmp_path / "model.pt"), **LECTURE)
    assert "; assumes " in repr(opened)
    trace = opened.trace(ids=[3, 4, 5])
    for shown in (trace, trace["decoder.0.self"]):
        assert "computed under these assumptions: " in vf.view(shown).caption
        assert "causal = True" in vf.view(shown).caption
    assert "assumptions" not in vf.view(vf.load("stories").trace("Once")).caption
