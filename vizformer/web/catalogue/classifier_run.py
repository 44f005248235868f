"""The classifiers that readers have trained on this server: one for each language, kept once it is trained."""

from pathlib import Path

from vizformer.checkpoints import Checkpoint, load
from vizformer.training.classifier import SECONDS, TUNED, Body, Epoch, probabilities, read
from vizformer.web.catalogue import session_folders
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.shared_run import GRACE, SharedRun


class ClassifierRun(SharedRun[Epoch]):
    """The training of the classifier: one job for each language."""

    module = "vizformer.training.classifier"
    good = ("done",)
    longest = SECONDS + GRACE

    def start(self, language: str) -> None:
        """Begins to train, unless it is trained already: the same sentences give the same weights."""
        self.begin(language, {"language": language})

    def read(self, folder: Path) -> tuple[list[Epoch], str]:
        return read(folder)


classifier_run = session_folders.OfTheServer(lambda: ClassifierRun(session_folders.new_folder()), ClassifierRun.close)
"""The classifier training of this server."""


@cached
def tuned(language: str) -> Checkpoint:
    """The encoder after its training."""
    return load(classifier_run().root / language / TUNED)


@cached
def answers(language: str, text: str) -> dict[Body, list[float]]:
    """The probability of each topic, for each way of training."""
    return probabilities(classifier_run().root / language, text)
