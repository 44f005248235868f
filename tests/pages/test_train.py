"""The page Train: choices, a real (very short) training, the slider, one's own input, the model on other pages."""

import io
import shutil
import zipfile
from pathlib import Path

import pytest
import torch

import vizformer as vf
from recipes import example_training
from vizformer.analysis.heads.measures import telling, words_to_look_at
from vizformer.jobs import queue as queue_module
from vizformer.training import live, worker
from vizformer.training.live import Plan
from vizformer.training.runs import Run, TrainingQueue
from vizformer.web.catalogue import trainings
from vizformer.web.link.view import usual_query
from vizformer.web.pages.train import form

PAGE, ATTENTION = "pages/learn/train.py", "pages/explore/attention.py"
STEPS = 12
SHORT = dict(n_layers=1, n_heads=2, d_model=16, steps=STEPS)


class Worker:
    """Trains within the call that starts it, or not at all: what a process would do, without the process."""

    def __init__(self, folder: Path, mode: str) -> None:
        self.mode, self.code = mode, None
        if mode == "done":
            worker.main(folder)
            self.code = 0

    def poll(self):
        return self.code

    def kill(self):
        self.code = -9

    def wait(self):
        return self.code


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """A queue of its own for each test; `queue.mode` says what becomes of what is started."""
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    made = TrainingQueue(tmp_path / "runs", at_once=1)
    made.mode = "done"
    monkeypatch.setattr(queue_module, "start_process", lambda module, folder: Worker(folder, made.mode))
    monkeypatch.setattr(trainings, "root", lambda: tmp_path / "runs")
    monkeypatch.setattr(trainings, "queue", lambda: made)
    monkeypatch.setattr(form, "STEPS", (STEPS, *form.STEPS))
    monkeypatch.setattr(live, "SNAPSHOTS", 5)  # every picture along a training looks at each of them
    yield made
    for cached in (trainings.checkpoint, trainings.look, trainings.positions, trainings.scores):
        cached.clear()


def copying(app):
    """The form of the task copy; the page begins with that of the training that it shows."""
    return app.segmented_control(key="train.task").set_value("copy").run()


def train(app, task="copy", **choices):
    """Chooses a small model and presses the button."""
    if app.segmented_control(key="train.task").value != task:
        app.segmented_control(key="train.task").set_value(task).run()
    for key, value in {"layers": 1, "heads": 2, "width": 16, f"steps.{task}": STEPS, **choices}.items():
        app.selectbox(key=f"train.{key}").set_value(value)
    return next(button for button in app.button if button.label in ("Train", "训练")).click().run()


def name_of(app):
    """The name of the training that the page shows."""
    found = app.query_params["run"]
    return found[0] if isinstance(found, list) else found


def texts(app):
    return "\n".join(element.value for element in app.text)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("locale", "said"), [("en-US", "Trained: 12 steps"), ("zh-CN", "训练完成：12 步")])
def test_train_and_drag(open_app, queue, locale, said):
    app = train(open_app(PAGE, locale=locale))
    assert not app.exception
    assert not app.error
    assert said in app.success[0].value
    run = queue.run(name_of(app))
    slider = app.select_slider[0]
    assert [int(option) for option in slider.options] == list(run.plan.kept)
    assert int(slider.value) == STEPS
    before = texts(app)
    assert run.checkpoint(-1).generate("cafe", max_new=9).text in before
    app.select_slider[0].set_value(0).run()
    assert not app.exception
    assert any(
        " 0" in caption.value and f"{run.progress().snapshots[0].marks.loss:.3f}" in caption.value
        for caption in app.caption
    )


@pytest.mark.sweep
def test_every_picture_follows_the_slider(open_app, queue):
    app = train(open_app(PAGE))
    charts = {chart.proto.id.rsplit("-", 1)[-1]: chart.proto.spec for chart in app.get("plotly_chart")}
    app.select_slider[0].set_value(0).run()
    moved = {chart.proto.id.rsplit("-", 1)[-1]: chart.proto.spec for chart in app.get("plotly_chart")}
    assert charts.keys() == moved.keys() == {"train.curves", "train.answer", "train.map.0", "train.positions"}
    assert all(charts[key] != moved[key] for key in charts)
    app.toggle(key="train.compared").set_value(True).run()
    assert len(app.get("plotly_chart")) == 5


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("key", "chosen", "link", "said", "missing"),
    [
        ("warmup", 0, "train.warmup:0", "no warm-up", {"warmup": 0.0}),
        ("scaled", False, "train.scaled:0", "embeddings without √d_model", {"scaled_embedding": False}),
        ("residual", False, "train.residual:0", "no residual connections", {"residual": False}),
    ],
)
def test_a_training_does_without_something_and_the_link_says_so(open_app, queue, key, chosen, link, said, missing):
    app = copying(open_app(PAGE))
    widget = app.selectbox if key == "warmup" else app.toggle
    widget(key=f"train.{key}").set_value(chosen)
    app = train(app)
    assert not app.exception
    assert not app.error
    name = name_of(app)
    plan = queue.run(name).plan
    assert {field: getattr(plan, field) for field in missing} == missing
    assert any(said in caption.value for caption in app.caption)
    assert any(said in info.value for info in app.info)  # 12 steps teach nothing: it says what was left out
    assert app.query_params["dials"] in (link, [link])
    linked = open_app(PAGE, run=name, dials=link)
    assert getattr(linked, "selectbox" if key == "warmup" else "toggle")(key=f"train.{key}").value == chosen


def chosen_in(app):
    """The choices of the form, as far as every task has them."""
    boxes = {key: app.selectbox(key=f"train.{key}").value for key in ("layers", "heads", "width", "norm", "rate")}
    return {"task": app.segmented_control(key="train.task").value, **boxes}


def of_plan(plan):
    return {
        "task": plan.task,
        "layers": plan.n_layers,
        "heads": plan.n_heads,
        "width": plan.d_model,
        "norm": plan.norm_order,
        "rate": plan.learning_rate,
    }


@pytest.mark.sweep
def test_the_form_says_what_the_training_below_it_was(open_app, queue):
    app = open_app(PAGE)
    example = trainings.run(trainings.example().name).plan
    assert chosen_in(app) == of_plan(example)
    assert app.selectbox(key="train.steps.repeat").value == example.steps
    assert app.selectbox(key="train.positions.repeat").value == example.positions
    app.segmented_control(key="train.task").set_value("sort").run()
    assert any("Below is still the training" in caption.value for caption in app.caption)
    app.selectbox(key="train.norm").set_value("post")
    app = train(app, "sort", rate=0.01)
    assert not any("Below is still the training" in caption.value for caption in app.caption)
    plan = queue.run(name_of(app)).plan
    assert chosen_in(app) == of_plan(plan)
    linked = open_app(PAGE, run=name_of(app))  # somebody else opens its link
    assert not linked.exception
    assert not linked.warning
    assert chosen_in(linked) == of_plan(plan)
    assert linked.selectbox(key="train.steps.sort").value == STEPS


@pytest.mark.sweep
def test_a_model_without_residual_connections_opens_on_other_pages(open_app, queue):
    app = copying(open_app(PAGE))
    app.toggle(key="train.residual").set_value(False)
    app = train(app)
    assert any((button.key or "").startswith("train.open.") for button in app.button)
    folder = trainings.folder(name_of(app))
    assert folder is not None
    assert vf.load(folder).model.config.residual == "none"


@pytest.mark.sweep
def test_the_training_before_stays_beside_the_new_one(open_app, queue):
    app = train(open_app(PAGE))
    first = name_of(app)
    assert "beside" not in app.query_params
    assert not any("Dash-dotted" in caption.value for caption in app.caption)
    app.selectbox(key="train.norm").set_value("post")
    app = train(app, rate=0.01)
    (said,) = [caption.value for caption in app.caption if "Dash-dotted" in caption.value]
    last = queue.run(first).progress().snapshots[-1].marks
    assert "with norm before · learning rate 0.003." in said  # only what differs, as it was in the one before
    assert "step 12: " in said
    assert f" {last.loss:.3f}, " in said
    second = name_of(app)
    linked = open_app(PAGE, run=second, beside=first)
    assert any("Dash-dotted" in caption.value for caption in linked.caption)
    app.button(key="train.alone").click().run()
    assert not any("Dash-dotted" in caption.value for caption in app.caption)
    assert "beside" not in app.query_params


@pytest.mark.sweep
def test_trainings_of_other_tasks_are_not_drawn_beside_it(open_app, queue):
    app = train(open_app(PAGE))
    app = train(app, "sort")
    assert not app.exception
    assert not any("Dash-dotted" in caption.value for caption in app.caption)


@pytest.mark.sweep
def test_ones_own_input(open_app, queue):
    app = train(open_app(PAGE))
    app.text_input(key="train.text.copy").set_value("b A d").run()
    assert not app.error
    app.text_input(key="train.text.copy").set_value("3 dogs").run()
    assert "knows only" in app.error[0].value
    assert len(app.get("plotly_chart")) == 4  # the last input stays
    app.text_input(key="train.text.copy").set_value("abcdefghijklmnop").run()
    assert any("Longer than anything in training" in caption.value for caption in app.caption)
    app.text_input(key="train.text.copy").set_value("").run()
    assert "Type something" in app.error[0].value


@pytest.mark.sweep
def test_the_induction_task(open_app, queue):
    app = train(open_app(PAGE), "repeat")
    assert not app.exception
    assert not app.error
    assert any("induction heads" in heading.value for heading in app.subheader)
    assert sum("train.score" in chart.proto.id for chart in app.get("plotly_chart")) == 2


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", ["rope", "alibi", "relative", "none", "sinusoidal"])
def test_positions_that_are_not_learned(open_app, queue, kind):
    app = copying(open_app(PAGE))
    app.selectbox(key="train.positions.kind").set_value(kind)
    app = train(app)
    assert not app.error
    drawn = any("train.positions" in chart.proto.id for chart in app.get("plotly_chart"))
    assert drawn == (kind == "sinusoidal")
    assert ("The model adds nothing" in texts(app)) == (kind != "sinusoidal")


@pytest.mark.sweep
def test_a_training_that_diverges(open_app, queue, monkeypatch):
    monkeypatch.setattr(form, "RATES", (*form.RATES, 10.0))
    app = train(open_app(PAGE), rate=10.0, **{"steps.copy": 100})
    assert "diverged" in app.error[0].value
    assert "smaller learning rate than 10" in app.error[0].value
    assert app.get("plotly_chart")


@pytest.mark.sweep
def test_waiting_running_and_stopping(open_app, queue):
    queue.mode = "never"
    other = queue.submit(Plan(task="sort", architecture="decoder-only", **SHORT), "somebody")
    app = train(open_app(PAGE))
    assert "you are next" in app.info[0].value
    app.button(key="train.stop").click().run()
    assert any("ended before it began" in info.value for info in app.info)
    assert queue.look(other, "somebody").phase == "starting"


@pytest.mark.sweep
def test_the_queue_is_full(open_app, queue):
    queue.mode, queue.longest_queue = "never", 0
    queue.submit(Plan(task="sort", architecture="decoder-only", **SHORT), "somebody")
    app = train(open_app(PAGE))
    assert "are waiting already" in app.error[0].value
    assert next(button for button in app.button if button.label == "Train")


@pytest.mark.sweep
def test_a_link_to_a_training_that_is_gone(open_app, queue):
    app = open_app(PAGE, run="train-0123456789")
    assert "no longer on the server" in app.info[0].value
    app = open_app(PAGE, run="train-../../etc")
    assert not app.exception
    assert any("it must be the name of a training" in info.value for info in app.info)


@pytest.mark.sample(1)
@pytest.mark.parametrize("task", ["copy", "repeat"])
def test_the_model_is_opened_on_other_pages_and_only_here(open_app, queue, task):
    app = train(open_app(PAGE), task)
    name = name_of(app)
    app.button(key="train.open.attention").click().run()
    assert not app.exception
    assert not app.error
    assert str(app.selectbox(key="view.model").value) == name
    assert app.text_input(key="view.text").value == {"copy": "cafe", "repeat": "gcadgcadg"}[task]
    assert app.get("bidi_component")
    assert len(app.selectbox(key="view.model").options) == len(vf.assets.bundled_models()) + 1
    other = open_app(ATTENTION)
    assert len(other.selectbox(key="view.model").options) == len(vf.assets.bundled_models())
    linked = open_app(ATTENTION, model=name, text="abcab")
    assert str(linked.selectbox(key="view.model").value) == name
    assert not linked.error
    shutil.rmtree(queue.root / name)
    gone = open_app(ATTENTION, model=name)
    assert any("This page has no model" in info.value for info in gone.info)


@pytest.mark.sweep
def test_the_zip_opens_elsewhere(open_app, queue, tmp_path):
    train(open_app(PAGE))
    (name,) = [folder.name for folder in queue.root.iterdir()]
    with zipfile.ZipFile(io.BytesIO(trainings.archive(name))) as file:
        file.extractall(tmp_path / "elsewhere")
    opened = vf.load(tmp_path / "elsewhere" / name)
    assert opened.key == Run(queue.root / name).checkpoint(-1).key


@pytest.mark.sweep
def test_a_training_is_shown_while_it_runs(open_app, queue):
    """Halfway: what is there can be looked at, the slider holds every planned step, and the end is noticed."""
    queue.mode = "never"
    app = train(open_app(PAGE))
    assert any("Starting" in info.value for info in app.info)
    run = queue.run(name_of(app))
    asked = iter(range(100))
    live.train(
        run.plan,
        keep=lambda s: run.keep(s, 1.0),
        report=lambda step, loss: run.write({"step": step, "loss": loss, "seconds": 1.0}),
        stop=lambda: next(asked) > 5,
    )
    app.run()
    assert not app.exception
    reached = run.progress().snapshots[-1].step
    assert [int(option) for option in app.select_slider[0].options] == list(run.plan.kept)
    assert any(f"has reached step {reached}" in caption.value for caption in app.caption)
    run.finish("stopped", 1.0)
    next(iter(queue._jobs.values())).process.code = 0
    app.run()
    assert any(f"Everything until step {reached} is kept" in info.value for info in app.info)
    assert int(app.select_slider[0].value) == reached


@pytest.mark.sweep
def test_a_finished_training_is_shown_before_ones_own(open_app):
    app = open_app(PAGE)
    assert not app.exception
    assert any("This training is finished" in box.value for box in app.caption)
    slider = next(box for box in app.select_slider if (box.key or "").startswith("train.slider."))
    assert slider.value == example_training.PLAN.steps
    app = slider.set_value(0).run()
    assert not app.exception
    assert any("0" in box.value for box in app.caption)


@pytest.mark.sweep
def test_a_training_is_opened_beside_what_it_began_with(open_app, queue):
    app = train(open_app(PAGE))
    name = name_of(app)
    app.button(key="train.open.side_by_side").click().run()
    assert not app.exception
    assert not app.error
    assert (app.query_params["model"], app.query_params["other"]) == (f"{name}@0", name)
    steps = [kept.step for kept in queue.run(name).progress().snapshots]
    assert sum("step" in option for option in app.selectbox(key="view.model").options) == len(steps)
    assert any("Moved most:" in one.value for one in app.text)


@pytest.mark.sweep
def test_it_opens_on_the_head_that_the_numbers_single_out_until_another_is_chosen(open_app):
    name, plan = trainings.example().name, trainings.run(trainings.example().name).plan
    last = len(trainings.look_at(name).progress.snapshots) - 1
    look = trainings.look(name, last, plan.on.example)
    tokens = look.tokens["decoder"]
    query = usual_query(tokens)
    found = telling(look.maps["decoder"].weights[:, :, query], words_to_look_at(tokens, query))
    layer, head = f"train.layer.{plan.n_layers}", f"train.head.{plan.n_heads}"
    assert (found.layer, found.head) != (0, 0)
    app = open_app(PAGE)
    assert not app.exception
    assert (app.selectbox(key=layer).value, app.selectbox(key=head).value) == (found.layer, found.head)
    assert f"Shown: layer {found.layer}, head {found.head}" in " ".join(one.value for one in app.caption)
    app.select_slider[0].set_value(0).run()  # earlier in the training: the same head
    assert (app.selectbox(key=layer).value, app.selectbox(key=head).value) == (found.layer, found.head)
    other = (found.head + 1) % plan.n_heads
    app.selectbox(key=head).set_value(other).run()
    assert (app.selectbox(key=layer).value, app.selectbox(key=head).value) == (found.layer, other)
    assert "Shown: layer" not in " ".join(one.value for one in app.caption)
