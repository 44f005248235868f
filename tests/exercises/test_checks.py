"""Every exercise solved rightly, and in ten wrong ways: each mistake is named, or its first number is placed."""

import functools
import inspect
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import vizformer as vf
from tests.exercises.wrong_ways import WRONG_WAYS
from tests.greedy import greedy_steps
from vizformer.errors import TraceError
from vizformer.exercises.path import TASKS
from vizformer.exercises.task import bundled_reading, random_reading, slipped
from vizformer.generation import beam_search

SLIPS = [(name, slip) for name, task in TASKS.items() for slip in task.slips]
OTHERS = [(name, slip) for name, ways in WRONG_WAYS.items() for slip in ways]
# The first one that ended is also the best of those that ended first: they have one length, the likelier stands first.
TWINS = ("max(scored, key=lambda one: one[1]) ⟶ scored[0]", "len(finished) >= width ⟶ finished")


@pytest.mark.parametrize("name", TASKS)
def test_the_solution_passes_and_its_stub_is_not_written_yet(name):
    exercise = vf.exercise(name)
    found = exercise.check(*exercise.task.solutions)
    assert found.passed, found
    assert bool(found)
    assert repr(found).startswith(f"✓ {exercise.title}: all {len(found.agreed)} cases agree")
    names = {"Tensor": torch.Tensor, "torch": torch, "Callable": Callable}
    exec(exercise.stub, names)
    stubs = [names[one] for one in exercise.names]
    assert [inspect.signature(one) for one in stubs] == [inspect.signature(one) for one in exercise.task.solutions]
    assert "not written yet" in repr(exercise.check(*stubs))


def test_every_exercise_is_gone_wrong_in_ten_ways():
    for name, task in TASKS.items():
        assert len(task.slips) + len(WRONG_WAYS[name]) >= 10, name


@pytest.mark.sample(20)
@pytest.mark.parametrize(("name", "slip"), SLIPS)
def test_a_slip_is_named(name, slip):
    exercise = vf.exercise(name)
    found = exercise.check(*slipped(exercise.task.solutions, slip))
    assert not found.passed
    assert exercise.task.slips[slip] in found.known, found
    assert len(found.known) == (2 if slip in TWINS else 1), found
    assert ("yours is one of them" in repr(found)) == (slip in TWINS)
    assert found.departure is not None


@pytest.mark.sample(20)
@pytest.mark.parametrize(("name", "slip"), OTHERS)
def test_another_mistake_is_named_or_placed(name, slip):
    exercise, words = vf.exercise(name), WRONG_WAYS[name][slip]
    found = exercise.check(*slipped(exercise.task.solutions, slip))
    assert not found.passed
    assert words in repr(found), found
    assert found.case is not None
    assert found.trouble is not None or found.departure.name in repr(found).splitlines()[1]


def test_mistakes_that_give_the_same_numbers_are_all_named():
    slip = "variance + eps ⟶ variance"
    exercise = vf.exercise("add_norm")
    found = exercise.check(*slipped(exercise.task.solutions, slip))
    assert "yours is one of them" in repr(found)
    assert [str(one) for one in found.known] == [
        *(f"The norm's ε is {eps}; here it is 0.05." for eps in ("0.0001", "1e-05", "1e-06", "1e-08")),
        "The norm's ε is left out; here it is 0.05.",
    ]


def test_a_mistake_that_gives_one_of_several_results_is_not_named_as_certain():
    exercise = vf.exercise("decoder_layer")
    entering = "cross_attention(x, memory, ⟶ cross_attention(entering, memory,\nn = len(x) ⟶ n, entering = len(x), x"
    found = exercise.check(*slipped(exercise.task.solutions, entering))
    assert len(found.known) == 1  # not: "This sublayer is left out", which gives the same weights, but another x
    assert "come from the layer's input" in str(found.known[0])
    both = entering + '\nfeed_forward(x, below(w, "feedforward.")) ⟶ 2 * feed_forward(x, below(w, "feedforward."))'
    found = exercise.check(*slipped(exercise.task.solutions, both))
    assert len(found.known) > 1
    assert "you made another one, or more than one" in repr(found)


def test_of_a_single_number_no_factor_is_named():
    exercise = vf.exercise("loss")
    found = exercise.check(lambda logits_of, target, pad: 3 * exercise.task.solutions[0](logits_of, target, pad))
    assert "times the right one" not in repr(found)
    assert "No known mistake gives these numbers" in repr(found)


def test_a_search_that_calls_step_once_in_each_round_passes():
    def beam_search(step, start, end, width, longest, alpha=0.6):
        new, cache, live, finished = torch.tensor([[start]]), None, [([], 0.0)], []
        for _ in range(longest):
            logits, cache = step(new, cache)
            totals = torch.tensor([total for _, total in live])[:, None] + torch.log_softmax(logits, dim=-1)
            best = totals.flatten().topk(width)
            going = [divmod(place, totals.shape[1]) for place in best.indices.tolist()]
            made = [(row, [*live[row][0], token], total) for (row, token), total in zip(going, best.values.tolist())]  # noqa: B905
            finished += [(ids, total) for _, ids, total in made if ids[-1] == end]
            going = [one for one in made if one[1][-1] != end]
            live = [(ids, total) for _, ids, total in going]
            if not live or len(finished) >= width:
                break
            cache = [kept[[row for row, _, _ in going]] for kept in cache]
            new = torch.tensor([[ids[-1]] for ids, _ in live])
        scored = [(ids, total / ((5 + len(ids)) / 6) ** alpha) for ids, total in finished or live]
        return max(scored, key=lambda one: one[1])

    found = vf.exercise("decoding").check(beam_search)
    assert found.passed, found


def test_what_is_made_by_hand_is_what_the_eye_finds():
    answers = {}
    for name, task in TASKS.items():
        for case in task.cases("他是医生。"):
            answers[name, str(case.title)] = task.results(task.solutions, case.arguments())

    def of(name, title, result):
        return np.asarray(answers[name, f"by hand: {title}"][result], dtype=np.float64)

    for (name, title, result), right in {
        ("softmax", "nothing is blocked", "weights"): [[1 / 7, 2 / 7, 4 / 7], [1 / 2, 1 / 6, 1 / 3]],
        ("softmax", "some keys are blocked", "weights"): [[1 / 3, 2 / 3, 0], [3 / 5, 0, 2 / 5]],
        ("softmax", "a row of which every key is blocked", "weights"): [[0, 0, 0], [1, 0, 0]],
        ("softmax", "large scores", "weights"): [[0.5, 0.5, 0]],
        ("positions", "the first position", "P"): [[0, 1, 0, 1]],
        ("positions", "two positions, four dimensions", "P"): [
            [0, 1, 0, 1],
            [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)],
        ],
        ("head", "weights of 3/4 and 1/4", "z"): [[3, 2]],
        ("split_join", "three tokens, two heads", "split"): [[[0, 1], [4, 5], [8, 9]], [[2, 3], [6, 7], [10, 11]]],
        ("split_join", "three tokens, two heads", "join"): np.arange(12).reshape(3, 4),
        ("add_norm", "the sum is 1, 1, 3, 3; γ = 2, β = 10", "x"): [[8, 8, 12, 12]],
        ("feedforward", "two numbers, three neurons", "out"): [[6, 9], [0, 11]],
        ("loss", "(ln 2 + ln 4) / 2", "loss"): 1.5 * math.log(2),
        ("decoding", "width 1, which is greedy", "ids"): [2, 1],
        ("decoding", "width 2 finds a more probable text", "ids"): [3, 1],
        ("decoding", "width 2 finds a more probable text", "score"): math.log(0.3998 * 0.94),
        ("training", "w = 3, loss w² / 2", "step 1: parameters"): [2.5],
        ("training", "w = 0.8, loss w² / 2", "step 1: parameters"): [0.4],
    }.items():
        np.testing.assert_allclose(of(name, title, result), right, atol=1e-6, err_msg=f"{name}: {title}")


def test_the_search_is_that_of_the_library():
    reading = bundled_reading("他喜欢喝水。")
    prompt, config = [token.id for token in reading.trace.tokens["encoder"]], reading.checkpoint.model.config
    task = TASKS["decoding"]
    found = {str(case.title)[-1]: task.results(task.solutions, case.arguments()) for case in task.cases("他喜欢喝水。")}
    greedy = greedy_steps(reading.checkpoint.model, prompt, config.start_ids, max_new=40)
    assert found["1"]["ids"] == [step.id for step in greedy]
    best = beam_search(reading.checkpoint.model, prompt, config.start_ids, width=4, max_new=40)[0]
    assert tuple(found["4"]["ids"]) == best.ids
    assert found["4"]["score"] == pytest.approx(best.score, abs=1e-5)


HEAD = TASKS["head"].solutions[0]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda q, k, v: HEAD(q, k, v), "cannot be called with q, k, v, blocked"),
        (lambda q, k, v, blocked=None: None, "returns nothing (None)"),
        (lambda q, k, v, blocked=None: HEAD(q, k, v, blocked)[1], "returns Tensor; a tuple is needed: weights, z"),
        (lambda q, k, v, blocked=None: ("weights", v), "weights is of the type str; Tensor is needed"),
        (lambda q, k, v, blocked=None: tuple(x.numpy() for x in HEAD(q, k, v, blocked)), "but is no tensor"),
        (lambda q, k, v, blocked=None: HEAD(q.double(), k.double(), v.double(), blocked), "as float64; float32 is needed"),
        (lambda q, k, v, blocked=None: HEAD(q.mul_(1), k, v.add_(1).sub_(1), blocked), "changes v"),
        (lambda q, k, v, blocked=None: q @ k, "It raises RuntimeError"),
        (lambda q, k, v, blocked=None: tuple(x[None] for x in HEAD(q, k, v, blocked)), "weights has the shape"),
        (lambda q, k, v, blocked=None: tuple(torch.dropout(x, 0.5, True) for x in HEAD(q, k, v, blocked)), "each time"),
        (lambda q, k, v, blocked=None: tuple(x * torch.nan for x in HEAD(q, k, v, blocked)), "is nan"),
        (lambda q, k, v, blocked=None: 1 / 0, "It raises ZeroDivisionError"),
        (functools.partial(HEAD, nothing=1), "It raises TypeError: head() got an unexpected"),
        (torch.nn.Identity(), "It raises TypeError"),
        ("head", "Pass your function itself: check(head)"),
    ],
)  # fmt: skip
def test_what_is_no_result_is_told_with_the_way_out(wrong, words):
    found = vf.exercise("head").check(wrong)
    assert not found.passed
    assert words in repr(found), found


def test_an_error_is_told_with_the_line_that_raised_it():
    def positional_encoding(n, d_model):
        return torch.zeros(n, d_model).fill_diagonal_("x")

    assert 'fill_diagonal_("x")' in repr(vf.exercise("positions").check(positional_encoding))
    assert "check(split, join)" in repr(vf.exercise("split_join").check(lambda x, n_heads: x))


def test_a_check_is_told_in_chinese_and_in_a_notebook():
    found = vf.exercise("head", "zh").check(lambda q, k, v, blocked=None: HEAD(q * 2, k, v, blocked))
    assert "一个头" in repr(found)
    assert "应为" in repr(found)
    assert not [line for line in repr(found).splitlines() if " should " in line]
    assert found._repr_html_().startswith("<div")
    hostile = vf.exercise("head").check(lambda q, k, v, blocked=None: (_ for _ in ()).throw(ValueError("<script>")))
    assert "<script>" not in hostile._repr_html_()
    assert "&lt;script&gt;" in hostile._repr_html_()


def test_an_exercise_shows_itself_in_both_languages():
    for name in TASKS:
        english, chinese = vf.exercise(name), vf.exercise(name, "zh-CN")
        assert english.statement != chinese.statement
        assert english.stub == chinese.stub
        assert "raise NotImplementedError" in english.stub
        assert f"def {english.names[0]}" in english.solution
        for one in (english, chinese):
            assert one.title in repr(one)
            assert one.title in one._repr_html_().replace("&amp;", "&")
    with pytest.raises(TraceError, match=r"There is no exercise 'heat'\. There are: softmax"):
        vf.exercise("heat")
    with pytest.raises(TraceError, match="There is no language 'fr'"):
        vf.exercise("head", "fr")


def test_no_two_sizes_of_the_random_model_are_the_same():
    config, trace = random_reading().checkpoint.model.config, random_reading().trace
    tokens = [len(tokens) for tokens in trace.tokens.values()]
    sizes = [config.d_model, config.d_head, config.n_heads, config.d_ff, config.vocab_size, *tokens]
    assert len(set(sizes)) == len(sizes)


def test_no_page_comes_to_the_exercises():
    root = Path(vf.__file__).parents[1]
    for path in [*(root / "pages").rglob("*.py"), *(root / "vizformer" / "web").rglob("*.py"), root / "app.py"]:
        text = path.read_text(encoding="utf-8")
        assert "vizformer.exercises" not in text, path
        assert "vf.exercise(" not in text, path
