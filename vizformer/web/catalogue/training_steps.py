"""Models of this server's trainings after a given step, in our own format: each is written when it is first asked for."""

import os
import shutil
import tempfile
import threading
from pathlib import Path

import streamlit as st

from vizformer.errors import CheckpointError
from vizformer.web.catalogue import session_folders, trainings
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.words.i18n import _

MOST = 40  # kept on disk; the ones asked for least recently go first, and are made again where somebody asks

_MINE = "vizformer.trainings"
_making = threading.Lock()
root = session_folders.OfTheServer(session_folders.new_folder)  # where the models are


def kept_steps(name: str) -> tuple[int, ...]:
    """The steps of a training whose weights are kept."""
    found = trainings.place(name)
    if found is None or not (found / "plan.json").is_file():
        return ()
    return tuple(sorted(int(file.stem) for file in found.glob("[0-9]*.safetensors") if file.stem.isdecimal()))


def folder(name: str, step: int) -> Path | None:
    """The folder of what a training had come to after a step; None where that is not kept."""
    if step not in kept_steps(name):
        return None
    with _making:
        found = root() / f"{name}@{step}"
        if not found.is_dir():
            _make(name, step, found)
            _make_room()
        else:
            os.utime(found)
        return found


def _make(name: str, step: int, folder: Path) -> None:
    """Writes a model beside `folder`, which is then whole as soon as it is there."""
    prepare_torch()
    from vizformer.training.runs import Run

    place = trainings.place(name)
    assert place is not None  # it has steps
    new = Path(tempfile.mkdtemp(dir=root()))
    try:
        Run(place).save_step(step, new)
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _make_room() -> None:
    """Removes the models of trainings that are gone, and of the others all but those asked for last."""
    found = sorted(root().glob("*@*"), key=lambda folder: folder.stat().st_mtime_ns, reverse=True)
    there = [folder for folder in found if kept_steps(folder.name.partition("@")[0])]
    for folder in found:
        if folder not in there[:MOST]:
            shutil.rmtree(folder, ignore_errors=True)


# Models that were trained on this server, at the end or after a step of their training: whoever has a name (from a
# link) may open one while the server keeps it.
def claim(name: str) -> None:
    """Lists a training's model in this session."""
    mine: list[str] = st.session_state.setdefault(_MINE, [])
    if name not in mine:
        mine.append(name)


def listed() -> tuple[ModelRef, ...]:
    """The finished trainings of this session."""
    found = (ModelRef("training", name) for name in st.session_state.get(_MINE, ()))
    return tuple(model for model in found if locate(model) is not None)


def steps(model: ModelRef) -> tuple[ModelRef, ...]:
    """The snapshots of a training and its final model; empty for another model."""
    kept = kept_steps(model.name) if model.source == "training" else ()
    return tuple(ModelRef("training", model.name, str(step)) for step in kept)


def locate(model: ModelRef) -> Path | None:
    """The folder of a finished training, or of what it had come to after a step."""
    return trainings.folder(model.name) if not model.revision else folder(model.name, int(model.revision))


def title(model: ModelRef) -> str:
    """The name of a model in lists: its task, the end of its name, and the step."""
    title = trainings.title(model.name)
    return title if not model.revision else _("{title}, step {step}", title=title, step=model.revision)


def absent(model: ModelRef) -> CheckpointError:
    """Why there is no such model."""
    return CheckpointError("This training is no longer on the server. Train again, it will come out the same.")


def stamp(path: Path) -> str:
    """None: a name says what was trained, and the same training gives the same weights."""
    return ""
