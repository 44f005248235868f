"""The benchmark of a class runs, with two readers for some seconds; its figures are not judged here."""

import sys

import click
import pytest
from click.testing import CliRunner

from tests import programs
from tests.benchmarks import classroom, room
from vizformer.serving import workers

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the processor's time is read from /proc"),
]


def run(*arguments: str) -> list[list[str]]:
    """The rows of the table."""
    result = CliRunner().invoke(classroom.main, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return [line.strip("| ").split(" | ") for line in result.output.splitlines() if line.startswith("| ")]


@pytest.mark.sweep
def test_the_cost_of_a_part_is_that_of_a_page_and_of_a_setting():
    head, part, mean = run("costs", "--repeats", "2", "--only", "masks kinds")
    assert (len(head), part[:2]) == (6, ["masks", "kinds"])
    assert float(part[2]) > 0
    assert float(part[4]) > 0
    assert mean[0] == "mean"


@pytest.mark.sweep
def test_a_class_asks_and_is_answered(monkeypatch):
    monkeypatch.setattr(classroom, "PLACES", [("masks", "mistakes")])
    rows = run("readers", "--readers", "2", "--every", "0.1", "--minutes", "0.05")
    assert rows[-1][0] == "all"
    assert int(rows[-1][1]) > 3


@pytest.mark.sweep
def test_a_class_is_served_by_several_workers(monkeypatch):
    try:
        workers.find()
    except click.ClickException as error:
        pytest.skip(error.message)
    monkeypatch.setattr(classroom, "PLACES", [("masks", "mistakes")])
    result = CliRunner().invoke(
        classroom.main, ["readers", "--readers", "2", "--every", "0.1", "--minutes", "0.05", "--workers", "2"]
    )
    assert " 0 errors" in result.output
    [kept] = [line for line in result.stderr.splitlines() if line.startswith("minute 1")]
    assert kept.count(" + ") == 3  # who looks after them, two workers, HAProxy


@pytest.mark.sweep
def test_a_class_is_served_by_two_servers_behind_nginx(monkeypatch):
    if programs.find(programs.NGINX) is None:
        pytest.skip(programs.way_out(programs.NGINX))
    monkeypatch.setattr(classroom, "PLACES", [("masks", "mistakes")])
    options = ["--readers", "2", "--every", "0.1", "--minutes", "0.05", "--nginx"]
    result = CliRunner().invoke(classroom.main, ["readers", *options])
    assert " 0 errors" in result.output
    assert "a core carries" in result.output


@pytest.mark.sweep
def test_followers_see_every_move_and_the_pointer():
    result = CliRunner().invoke(room.main, ["--followers", "2", "--moves", "3", "--places", "3"])
    assert result.exception is None, result.exception
    rows = [line.strip("| ").split(" | ") for line in result.output.splitlines() if line.startswith("| a ")]
    assert [(row[0], row[1], row[2]) for row in rows] == [
        ("a move", "3", "6"),
        ("a place of the pointer", "3", "6"),
    ]
