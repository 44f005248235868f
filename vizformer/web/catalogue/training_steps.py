"""Models of this server's trainings after a given step, in our own format: each is written when it is first asked for."""

import os
import shutil
import tempfile
import threading
from pathlib import Path

from vizformer.web.catalogue import session_folders, trainings
from vizformer.web.catalogue.torch_setup import prepare_torch

MOST = 40  # kept on disk; the ones asked for least recently go first, and are made again where somebody asks

_making = threading.Lock()
root = session_folders.OfTheServer(session_folders.new_folder)  # where the models are


def steps(name: str) -> tuple[int, ...]:
    """The steps of a training whose weights are kept."""
    found = trainings.place(name)
    if found is None or not (found / "plan.json").is_file():
        return ()
    return tuple(sorted(int(file.stem) for file in found.glob("[0-9]*.safetensors") if file.stem.isdecimal()))


def folder(name: str, step: int) -> Path | None:
    """The folder of what a training had come to after a step; None where that is not kept."""
    if step not in steps(name):
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
    there = [folder for folder in found if steps(folder.name.partition("@")[0])]
    for folder in found:
        if folder not in there[:MOST]:
            shutil.rmtree(folder, ignore_errors=True)
