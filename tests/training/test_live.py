"""Live training: what it keeps, how it ends, the same plan twice, the folder, the queue."""

import errno
import json
import math
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors import SafetensorError

import vizformer as vf
from vizformer.errors import VizformerError
from vizformer.jobs import queue as queue_module
from vizformer.jobs import worker as job_worker
from vizformer.model.forward_pass import ForwardPass
from vizformer.training import live, runs, worker
from vizformer.training.live import Plan, schedule, train
from vizformer.training.loss import IGNORED
from vizformer.training.runs import Run, TrainingQueue
from vizformer.training.tasks import TASKS, batch_of, ids_of, loss_of, marks

SMALL = Plan(task="copy", architecture="encoder-decoder", n_layers=1, n_heads=2, d_model=16, steps=12)


def trained(plan, **options):
    kept, losses = [], []
    ending = train(
        plan,
        keep=lambda snapshot: kept.append((snapshot.step, snapshot.marks, snapshot.model.embedding.weight.clone())),
        report=lambda step, loss: losses.append((step, loss)),
        **options,
    )
    return ending, kept, losses


@pytest.mark.parametrize("steps", [5, 12, 100, 5000])
def test_kept_steps_begin_at_0_and_end_at_the_last(steps):
    kept = replace(SMALL, steps=steps).kept
    assert kept[:2] == (0, 1)
    assert kept[-1] == steps
    assert list(kept) == sorted(set(kept))
    assert len(kept) <= 24
    assert steps < 100 or len(kept) >= 18


@pytest.mark.slow
def test_a_training_keeps_what_it_planned_and_repeats_itself():
    ending, kept, losses = trained(SMALL)
    assert ending == "done"
    assert [step for step, _, _ in kept] == list(SMALL.kept)
    assert losses[-1][0] == SMALL.steps
    assert kept[-1][1].loss < kept[0][1].loss
    _, again, _ = trained(SMALL)
    assert all(torch.equal(a[2], b[2]) for a, b in zip(kept, again, strict=True))
    _, other, _ = trained(replace(SMALL, seed=1))
    assert not torch.equal(kept[0][2], other[0][2])


@pytest.mark.sweep
@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder-only"])
def test_it_learns(architecture):
    plan = Plan(task="sort", architecture=architecture, n_layers=1, n_heads=2, d_model=32, steps=150)
    _, kept, _ = trained(plan)
    assert kept[-1][1].symbols > 3 * kept[0][1].symbols
    assert kept[-1][1].loss < 0.5 * math.log(len(plan.on.symbols))


def test_stopped_and_out_of_time():
    asked = []
    ending, kept, _ = trained(SMALL, stop=lambda: bool(asked.append(0)) or len(asked) == 7)
    assert (ending, kept[-1][0]) == ("stopped", 7)
    ending, kept, _ = trained(SMALL, seconds=0.0)
    assert (ending, kept[-1][0]) == ("time", 1)


def test_a_training_that_diverges_says_so_and_keeps_what_was_good():
    ending, kept, losses = trained(replace(SMALL, learning_rate=10.0, steps=100))
    assert ending == "diverged"
    assert kept[0][0] == 0
    assert all(math.isfinite(snapshot.loss) for _, snapshot, _ in kept)
    assert not losses[-1][1] < 4 * kept[0][1].loss


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"task": "poetry"}, "no task 'poetry'"),
        ({"task": "repeat"}, "is for: decoder-only"),
        ({"architecture": "encoder-only"}, "is for"),
        ({"n_layers": 9}, "n_layers=9: choose 1 to 4"),
        ({"steps": 100_000}, "steps=100000"),
        ({"warmup": 0.95}, "warmup=0.95: choose 0.0 to 0.9"),
        ({"learning_rate": math.nan}, "learning_rate=nan"),
        ({"d_model": 18, "n_heads": 4}, "not divisible"),
        ({"d_model": 10, "n_heads": 2, "positions": "rope"}, "d_head=5 is odd"),
    ],
)
def test_impossible_plans(changes, complaint):
    with pytest.raises(VizformerError, match=complaint):
        replace(SMALL, **changes)


def test_a_plan_survives_the_file_and_has_a_name_of_its_own():
    assert Plan.from_json(SMALL.to_json()) == SMALL
    assert SMALL.key == Plan.from_json(SMALL.to_json()).key
    assert SMALL.key != replace(SMALL, seed=1).key


def test_plans_from_before_an_option_keep_their_names():
    """A training's name is in links, and on the bundled one: an option at its usual value changes nothing."""
    assert json.loads(SMALL.to_json()).keys().isdisjoint(live.LATER)
    for change in ({"warmup": 0.0}, {"scaled_embedding": False}, {"residual": False}):
        other = replace(SMALL, **change)
        assert other.key != SMALL.key
        assert Plan.from_json(other.to_json()) == other


@pytest.mark.sweep
def test_without_a_warm_up_the_learning_rate_begins_at_its_largest():
    rates = [schedule(step / 1000, 0.0) for step in range(1001)]
    assert rates[0] == 1.0
    assert all(a >= b for a, b in pairwise(rates))
    _, usual, _ = trained(SMALL)
    _, without, _ = trained(replace(SMALL, warmup=0.0))
    assert torch.equal(usual[0][2], without[0][2])  # the same weights to begin with
    assert not torch.equal(usual[1][2], without[1][2])


@pytest.mark.parametrize("order", ["pre", "post"])
@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder-only"])
def test_without_residual_connections_a_row_is_what_the_last_sublayer_made(order, architecture):
    plan = replace(SMALL, architecture=architecture, norm_order=order)
    torch.manual_seed(0)
    usual = plan.build().eval()
    torch.manual_seed(0)
    without = replace(plan, residual=False).build().eval()
    assert all(torch.equal(a, b) for a, b in zip(usual.parameters(), without.parameters(), strict=True))
    block = without.decoder.layers[0]
    x, y = torch.randn(1, 3, 16), torch.randn(1, 3, 16)
    after = block.feedforward_norm(y) if order == "post" else y
    torch.testing.assert_close(block.add("feedforward", x, lambda _: y, ForwardPass(), ""), after)
    other = usual.decoder.layers[0]
    assert not torch.allclose(other.add("feedforward", x, lambda _: y, ForwardPass(), ""), after)


def test_without_the_root_the_rows_of_the_table_are_added_as_they_are():
    torch.manual_seed(0)
    usual = replace(SMALL, positions="none").build().eval()
    torch.manual_seed(0)
    short = replace(SMALL, positions="none", scaled_embedding=False).build().eval()
    ids = torch.tensor([[5, 6]])
    torch.testing.assert_close(usual.embed(ids), 4 * short.embed(ids))
    assert torch.equal(short.embed(ids), short.embedding(ids))


@pytest.mark.parametrize("change", [{"warmup": 0.0}, {"scaled_embedding": False}, {"residual": False}])
@pytest.mark.sample(1)
def test_kept_weights_open_as_the_model_that_was_trained(tmp_path, change):
    plan = replace(SMALL, steps=5, **change)
    run, last = Run.create(tmp_path / "train-0000000000", plan), []

    def keep(snapshot):
        run.keep(snapshot, 0.1)
        last.append(snapshot.model)

    run.finish(train(plan, keep=keep, report=lambda *_: None), 0.2)
    batch = batch_of(plan.on, plan.architecture, [plan.on.read("cafe")])
    opened = run.checkpoint(-1).model
    torch.testing.assert_close(loss_of(opened, batch), loss_of(last[-1].eval(), batch), rtol=2e-2, atol=2e-2)
    assert vf.load(run.folder).model.config == plan.config


def test_the_learning_rate_rises_and_falls():
    rates = [schedule(step / 100) for step in range(1, 101)]
    assert rates[9] == 1.0 == max(rates)
    assert rates[4] == 0.5
    assert rates[-1] == pytest.approx(0.1)
    assert all(a >= b for a, b in pairwise(rates[9:]))


# --- examples ---------------------------------------------------------------------------------------------------------


def test_labels_stand_only_where_there_is_an_answer():
    task = TASKS["copy"]
    batch = batch_of(task, "decoder-only", [task.read("ab"), task.read("c")])
    words = [[task.vocabulary[id] for id in row] for row in batch.ids.tolist()]
    assert words == [["<s>", "a", "b", ":", "a", "b"], ["<s>", "c", ":", "c", "<pad>", "<pad>"]]
    labels = [[task.vocabulary[id] if id != IGNORED else "" for id in row] for row in batch.labels.tolist()]
    assert labels == [["", "", "", "a", "b", "</s>"], ["", "", "c", "</s>", "", ""]]
    read, write = ids_of(task, task.read("ab"), "encoder-decoder")
    assert ([task.vocabulary[id] for id in read], [task.vocabulary[id] for id in write]) == (
        ["a", "b", "</s>"],
        ["a", "b", "</s>"],
    )


@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder-only"])
def test_marks_are_what_greedy_decoding_gives(architecture):
    """A model trained for a moment gets some of it right; its marks against its own answers, one by one."""
    plan = replace(SMALL, architecture=architecture, d_model=32, steps=60, learning_rate=0.01)
    models = []
    train(plan, keep=lambda snapshot: models.append(snapshot.model), report=lambda *_: None)
    model = models[-1].eval()
    checkpoint = vf.checkpoints.Checkpoint("tiny", model, plan.on.tokenizer(architecture))
    examples = [plan.on.read(text) for text in ("ab", "pa", "cde", "aabb", "hgfedcba", "ponmlkji", "ee", "bd", "ccc")]
    for example in examples:
        found = marks(model, batch_of(plan.on, architecture, [example]))
        text = example.question if architecture == "encoder-decoder" else example.question + ":"
        made = checkpoint.generate(text, max_new=len(example.answer) + 1)
        right = made.text == example.answer and made.ids[-1] == plan.config.eos_id
        assert found.accuracy == float(right)
    together = batch_of(plan.on, architecture, examples)
    assert marks(model, together).loss == pytest.approx(float(loss_of(model, together)), rel=1e-5)


# --- the folder -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_worker_writes_a_folder_that_opens_as_a_model(tmp_path):
    run = Run.create(tmp_path / "train-0123456789", SMALL)
    worker.main(run.folder)
    progress = run.progress()
    assert progress.ending == "done"
    assert progress.steps[-1] == SMALL.steps
    assert progress.losses.dtype == np.float32
    assert [kept.step for kept in progress.snapshots] == list(SMALL.kept)
    opened, last = vf.load(run.folder), run.checkpoint(len(progress.snapshots) - 1)
    assert opened.name == "train-0123456789"
    assert opened.model.config == SMALL.config
    assert opened.key == last.key
    assert opened.trace("cafe").tokens["encoder"][0].text == "c"
    first = run.checkpoint(0).model.embedding.weight
    assert not torch.equal(first, last.model.embedding.weight)


def test_a_line_that_is_half_written_is_not_read(tmp_path):
    run = Run.create(tmp_path / "run", SMALL)
    assert run.progress().snapshots == ()
    run.write({"step": 3, "loss": 1.5, "seconds": 0.2})
    with (run.folder / "progress.jsonl").open("a") as file:
        file.write('{"step": 4, "lo')
    assert run.progress().steps.tolist() == [3]


@pytest.mark.parametrize(("sign", "ending"), [("stop", "stopped"), ("unwatched", "abandoned")])
def test_a_worker_ends_when_it_is_told_to_and_when_nobody_watches(tmp_path, monkeypatch, sign, ending):
    monkeypatch.setattr(job_worker, "LOOK_EVERY", 0.0)
    run = Run.create(tmp_path / "run", SMALL)
    if sign == "stop":
        (run.folder / "stop").touch()
    else:
        long_ago = time.time() - 2 * job_worker.UNWATCHED
        os.utime(run.folder / "watched", (long_ago, long_ago))
    worker.main(run.folder)
    progress = run.progress()
    assert progress.ending == ending
    assert [kept.step for kept in progress.snapshots] == [0, 1]
    assert vf.load(run.folder).model.config == SMALL.config


@pytest.mark.slow
@pytest.mark.sweep
def test_the_worker_is_a_process_without_streamlit(tmp_path):
    code = "import sys, vizformer.training.worker; sys.exit('streamlit' in sys.modules or 'plotly' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- the queue --------------------------------------------------------------------------------------------------------


class Process:
    """Stands for a worker process that runs until the test ends it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.code = folder, None

    def poll(self):
        return self.code

    def wait(self):
        return self.code

    def kill(self):
        self.code = -9

    def end(self, ending="done"):
        run = Run(self.folder)
        train(replace(run.plan, steps=5), keep=lambda s: run.keep(s, 0.1), report=lambda *_: None)
        run.finish(ending, 0.1)
        self.code = 0


@pytest.fixture
def processes(monkeypatch):
    started = []
    monkeypatch.setattr(
        queue_module, "start_process", lambda module, folder: started.append(Process(folder)) or started[-1]
    )
    return started


def plans(n):
    return [replace(SMALL, seed=seed) for seed in range(n)]


@pytest.mark.slow
def test_one_trains_and_the_others_wait_their_turn(tmp_path, processes):
    queue = TrainingQueue(tmp_path, at_once=1)
    a, b, c = (queue.submit(plan, who) for plan, who in zip(plans(3), "abc", strict=True))
    assert [queue.look(name, who).phase for name, who in ((a, "a"), (b, "b"), (c, "c"))] == [
        "starting",
        "waiting",
        "waiting",
    ]
    assert (queue.look(b, "b").ahead, queue.look(c, "c").ahead) == (0, 1)
    processes[0].end()
    assert queue.look(c, "c").ahead == 0  # whoever asks moves the queue on
    assert queue.look(a, "a").phase == "over"
    assert queue.look(b, "b").phase == "starting"
    assert len(processes) == 2
    assert queue.look("train-ffffffffff", "a") is None
    queue.close()
    assert not tmp_path.exists()
    assert processes[1].code == -9


def test_the_queue_is_bounded(tmp_path, processes):
    queue = TrainingQueue(tmp_path, at_once=1)
    queue.longest_queue = 2
    for plan, who in zip(plans(3), "abc", strict=True):
        queue.submit(plan, who)
    with pytest.raises(VizformerError, match="2 are waiting"):
        queue.submit(replace(SMALL, seed=9), "b")


def test_trainings_of_visitors_take_turns_and_no_class_is_too_large(tmp_path, processes):
    queue = TrainingQueue(tmp_path, at_once=1)
    names = {}

    def train(who, visitor, address):
        names[who] = queue.submit(replace(SMALL, seed=len(names)), who, visitor, address)

    train("first", "first", "far")
    for tab in range(2):
        train(f"tab {tab}", "many tabs", "far")
    with pytest.raises(VizformerError, match="You have begun 2"):  # a tab more of the same browser
        queue.submit(replace(SMALL, seed=99), "tab 3", "many tabs", "far")
    for number in range(40):
        train(f"pupil {number}", f"pupil {number}", "school")
    train("home", "home", "home")
    ahead = {who: queue.look(name, who).ahead for who, name in names.items() if who != "first"}
    assert sorted(ahead, key=ahead.__getitem__)[:6] == [
        *("pupil 0", "home"),  # each address once, those where nobody trains first
        *("pupil 1", "tab 0"),
        *("pupil 2", "pupil 3"),
    ]
    assert ahead["tab 1"] == len(ahead) - 1  # the second one of a visitor, after all first ones
    processes[0].end()
    queue.look(names["home"], "home")
    assert queue.look(names["pupil 0"], "pupil 0").phase == "starting"
    for number in range(40, 81):
        train(f"pupil {number}", f"pupil {number}", "school")
    with pytest.raises(VizformerError, match="are waiting already"):
        train("pupil 81", "pupil 81", "school")
    train("another", "another", "home")


def test_one_visitor_cannot_fill_the_queue(tmp_path, processes):
    queue = TrainingQueue(tmp_path, at_once=1)
    first, second, third = plans(3)
    names = [queue.submit(plan, "a") for plan in (first, second)]
    with pytest.raises(VizformerError, match="You have begun 2"):
        queue.submit(third, "a")
    queue.submit(third, "b")
    assert queue.submit(third, "a")  # to watch what others train costs nothing
    fourth = replace(SMALL, seed=9)
    with pytest.raises(VizformerError, match="You have begun 2"):
        queue.submit(fourth, "a")
    queue.look(names[0], "c")
    assert not queue.stop(names[0], "a")  # it goes on for somebody else, and is no longer a's
    queue.submit(fourth, "a")
    assert queue.stop(names[1], "a")
    queue.submit(replace(SMALL, seed=10), "a")


def test_a_closed_queue_starts_nothing_any_more(tmp_path, processes):
    queue = TrainingQueue(tmp_path / "runs", at_once=1)
    names = [queue.submit(plan, "a") for plan in plans(2)]
    queue.close()
    assert processes[0].code == -9
    assert queue.look(names[1], "a") is None
    queue.submit(SMALL, "a")  # a page that was still running
    assert len(processes) == 1


@pytest.fixture
def full():
    """A file into which nothing fits."""
    if not Path("/dev/full").is_char_device():
        pytest.skip("needs /dev/full")
    return Path("/dev/full")


@pytest.mark.slow
@pytest.mark.parametrize("what", ["progress.jsonl", "config.json", "the first weights", "the last weights"])
def test_a_full_disk_ends_the_training_and_is_said(tmp_path, processes, monkeypatch, full, what):
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    queue = TrainingQueue(tmp_path, at_once=1)
    name = queue.submit(replace(SMALL, steps=5), "a")
    if "." in what:
        (tmp_path / name / what).symlink_to(full)
    else:
        no_room_for = f"{0 if what == 'the first weights' else 5:06d}.new"
        write_weights = runs.write_weights

        def save(tensors, path):
            write_weights(tensors, path)
            if path.name == no_room_for:
                raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

        monkeypatch.setattr(runs, "write_weights", save)
    processes[0].code = worker.main(tmp_path / name)
    assert processes[0].code == worker.FULL
    state = queue.look(name, "a")
    assert (state.phase, state.progress.ending) == ("over", "full")
    # Whatever could be written is whole: nobody opens half a model.
    assert not list((tmp_path / name).glob("*.new"))
    assert (tmp_path / name / "model.safetensors").exists() == (what == "the last weights")
    assert queue.look(queue.submit(SMALL, "b"), "b").phase == "starting"  # the next one has its turn


def test_a_line_that_is_half_written_is_passed_over(tmp_path):
    run = Run.create(tmp_path / "train-0000000000", SMALL)
    (run.folder / "progress.jsonl").write_text('{"step": 1, "loss": 2.5, "seconds": 0.1}\n{"step": 2, "lo', "utf-8")
    assert list(run.progress().steps) == [1]
    run.write({"ending": "stopped", "seconds": 1.0})
    assert run.progress().ending == ""
    run.write({"ending": "stopped", "seconds": 1.0})
    assert run.progress().ending == "stopped"


def test_without_room_no_training_begins(tmp_path, processes, monkeypatch):
    queue = TrainingQueue(tmp_path / "runs", at_once=1)
    monkeypatch.setattr(queue_module.shutil, "disk_usage", lambda path: SimpleNamespace(free=queue_module.ROOM - 1))
    with pytest.raises(VizformerError, match="no room for this"):
        queue.submit(SMALL, "a")
    monkeypatch.undo()

    def no_room(folder, plan):
        folder.mkdir(parents=True)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Run, "create", no_room)
    with pytest.raises(VizformerError, match="no room for this"):
        queue.submit(SMALL, "a")
    assert not list((tmp_path / "runs").iterdir())
    assert not processes


def test_what_is_left_of_a_training_is_in_nobodys_way(tmp_path, processes):
    queue = TrainingQueue(tmp_path, at_once=1)
    (tmp_path / f"train-{SMALL.key}").mkdir()
    assert queue.look(queue.submit(SMALL, "a"), "a").phase == "starting"


def test_many_who_ask_at_once_for_one_training_get_one_process(tmp_path, processes):
    queue = TrainingQueue(tmp_path, at_once=2)
    with ThreadPoolExecutor(8) as pool:
        names = set(pool.map(lambda who: queue.submit(SMALL, f"reader {who}"), range(40)))
    assert names == {f"train-{SMALL.key}"}
    assert len(processes) == 1


def test_a_process_that_cannot_be_started_ends_its_training_only(tmp_path, monkeypatch):
    def start(module, folder):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(queue_module, "start_process", start)
    queue = TrainingQueue(tmp_path, at_once=1)
    state = queue.look(queue.submit(SMALL, "a"), "a")
    assert (state.phase, state.progress.ending) == ("over", "full")


@pytest.mark.slow
@pytest.mark.sweep
def test_a_worker_ends_with_the_server_that_started_it(tmp_path):
    run = Run.create(tmp_path / "train-0000000000", replace(SMALL, steps=5000))
    code = (
        "import subprocess, sys, os; print(subprocess.Popen([sys.executable, '-m', 'vizformer.training.worker', "
        "sys.argv[1], str(os.getpid())], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run.folder)], capture_output=True, text=True, check=True)
    pid, end = int(done.stdout), time.monotonic() + 60  # its parent is gone before it has begun
    while Path(f"/proc/{pid}").exists() and not run.progress().ending and time.monotonic() < end:
        time.sleep(0.1)
    assert run.progress().ending == "abandoned"
    assert len(run.progress().steps) < 100


@pytest.mark.slow
def test_the_same_plan_is_trained_once(tmp_path, processes):
    queue = TrainingQueue(tmp_path, at_once=1)
    name = queue.submit(SMALL, "a")
    assert queue.submit(SMALL, "b") == name
    assert not queue.stop(name, "a")  # b is watching
    assert not (tmp_path / name / "stop").exists()
    assert queue.stop(name, "b")
    assert (tmp_path / name / "stop").exists()
    processes[0].end("stopped")
    assert queue.look(name, "a").progress.ending == "stopped"
    again = queue.submit(SMALL, "a")  # what was stopped is not what was planned
    assert again == f"{name}-2"
    processes[1].end()
    assert queue.look(again, "a").phase == "over"
    assert queue.submit(SMALL, "b") == again


def test_a_training_that_nobody_waits_for_leaves_the_queue(tmp_path, processes, monkeypatch):
    queue = TrainingQueue(tmp_path, at_once=1)
    queue.submit(plans(1)[0], "a")
    name = queue.submit(plans(2)[1], "b")
    monkeypatch.setattr(queue_module, "UNWATCHED", 0.0)
    third = queue.submit(plans(3)[2], "c")
    state = queue.look(name, "b")
    assert (state.phase, state.progress.ending) == ("over", "abandoned")
    assert queue.look(third, "c").progress.snapshots == ()


@pytest.mark.slow
def test_a_process_that_breaks_off_keeps_what_it_had(tmp_path, processes):
    queue = TrainingQueue(tmp_path, at_once=1)
    name = queue.submit(SMALL, "a")
    run = queue.run(name)
    train(replace(SMALL, steps=5), keep=lambda s: run.keep(s, 0.1), report=lambda *_: None)
    processes[0].code = -11
    state = queue.look(name, "a")
    assert (state.phase, state.progress.ending) == ("over", "failed")
    assert vf.load(tmp_path / name).model.config == SMALL.config


def test_a_process_that_does_not_obey_is_ended(tmp_path, processes, monkeypatch):
    monkeypatch.setattr(queue_module, "HANGS", 0.0)
    queue = TrainingQueue(tmp_path, at_once=1)
    name = queue.submit(SMALL, "a")
    assert queue.stop(name, "a")
    queue.look(name, "a")
    assert processes[0].code == -9


@pytest.mark.slow
def test_old_trainings_make_room(tmp_path, processes, monkeypatch):
    monkeypatch.setattr(TrainingQueue, "most_kept", 2)
    queue = TrainingQueue(tmp_path, at_once=9)
    names = []
    for plan in plans(3):
        names.append(queue.submit(plan, "a"))
        processes[-1].end()
        queue.look(names[-1], "a")
    assert queue.look(names[0], "a") is None
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names[1:])


@pytest.mark.slow
@pytest.mark.sweep
def test_a_real_process_trains_and_is_stopped(tmp_path):
    queue = TrainingQueue(tmp_path / "runs", at_once=1)
    name = queue.submit(replace(SMALL, steps=5000), "a")
    end = time.monotonic() + 120
    while not (state := queue.look(name, "a")).progress.snapshots and time.monotonic() < end:
        time.sleep(0.2)
    assert state.phase == "running", (tmp_path / "runs" / name / "log.txt").read_text()
    assert queue.stop(name, "a")
    while (state := queue.look(name, "b")).phase != "over" and time.monotonic() < end:
        time.sleep(0.2)
    assert state.progress.ending == "stopped"
    assert json.loads((tmp_path / "runs" / name / "config.json").read_text())["format"] == "vizformer-1"
    queue.close()
