"""The measurement of attention: one process for all, which can be joined and stopped, and whose results stay."""

import time
from pathlib import Path

import pytest

from vizformer.analysis.costs.attention_speed import LAYER_WAYS
from vizformer.web.catalogue.speed_run import SpeedRun, SpeedState


def over(run: SpeedRun) -> SpeedState:
    end = time.monotonic() + 300
    while (now := run.look("heads")).running:
        assert time.monotonic() < end
        time.sleep(0.05)  # a process is waited for, not a number of seconds
    return now


@pytest.fixture
def run(tmp_path):
    made = SpeedRun(tmp_path, lengths=(64, 128))
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.sweep
def test_it_is_measured_once_for_all_who_ask_and_the_results_stay(run: SpeedRun) -> None:
    assert run.look("heads") == SpeedState((), False, "")
    run.start("heads")
    process = run._jobs["heads"].process
    run.start("heads")  # another reader presses the button: the same process
    assert run._jobs["heads"].process is process
    now = over(run)
    assert now.ending == "done"
    assert len(now.found) == 8
    assert run.look("heads") == now


@pytest.mark.sweep
@pytest.mark.slow
def test_it_can_be_stopped_and_begun_again(tmp_path: Path) -> None:
    run = SpeedRun(tmp_path, lengths=[64] * 5000, seconds=600)  # long enough for a machine with more to do
    try:
        run.start("heads")
        end = time.monotonic() + 60
        while not run.look("heads").found:
            assert time.monotonic() < end
            time.sleep(0.05)
        run.stop("heads")
        now = over(run)
        assert now.ending == "stopped"
        assert now.found
        run.start("heads")
        assert run.look("heads").running
    finally:
        run.close()
    assert not run.look("heads").running


def test_one_that_breaks_off_is_said_to_have(run: SpeedRun) -> None:
    run.start("heads")
    process = run._jobs["heads"].process
    assert process is not None
    process.kill()
    process.wait()
    assert run.look("heads").ending == "failed"


@pytest.mark.slow
@pytest.mark.sweep
def test_the_layers_are_another_measurement_of_the_same_queue(run: SpeedRun) -> None:
    run.start("layers")
    while run.look("layers").running:
        time.sleep(0.05)
    assert {one.way for one in run.look("layers").found} == set(LAYER_WAYS)
    assert run.look("heads") == SpeedState((), False, "")
