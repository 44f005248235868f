"""Models of a hub by name, owner/name or owner/name@revision, fetched into huggingface_hub's own cache.

The hub is the one `huggingface_hub` knows: HF_ENDPOINT, HF_TOKEN, HF_HOME and HF_HUB_OFFLINE count.  Only the files
that are read are fetched: config.json, the tokenizer, how an encoder of sentences pools, and one form of the weights
(safetensors before .bin).
"""

import json
import re
import threading
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vizformer.checkpoints.files import finding, formats
from vizformer.checkpoints.files.untrusted_folder import JSON_LIMIT, first_line
from vizformer.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator

_PART = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}"
NAME = re.compile(rf"({_PART}/{_PART})(?:@([A-Za-z0-9][A-Za-z0-9_./-]{{0,79}}))?")
_CONFIG = ("config.json", "generation_config.json", "modules.json", "1_Pooling/config.json")
_TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "tokenizer.model",
    "spiece.model",
    "source.spm",
    "target.spm",
    "target_vocab.json",
    "source_tokenizer.json",
    "tokenizer_of_targets.json",
)


class StoppedError(CheckpointError):
    """The download was stopped by whoever asked for it; what had come stays in the cache and is not fetched again."""


@dataclass
class Progress:
    """How far a download is; `stop` ends it at the next piece that arrives."""

    total: int = 0
    done: int = 0
    file: str = ""
    stop: threading.Event = field(default_factory=threading.Event)


def is_name(source: str) -> bool:
    """Whether `source` looks like the name of a model on a hub."""
    return NAME.fullmatch(source) is not None


def fetch(name: str, progress: Progress | None = None, accept: Callable[[int], None] | None = None) -> Path:
    """The folder of a model of the hub, fetched as far as it is not in the cache.

    Args:
        name: owner/name, or owner/name@revision (a branch, tag or commit).
        accept: is told the size of all files in bytes before the first is fetched, and how many have come where these
            are more than the hub said; may raise.

    Raises:
        StoppedError: `progress.stop` was set.
    """
    repository, revision = _parts(name)
    progress = progress or Progress()
    from huggingface_hub import is_offline_mode

    try:
        with _in_words(name):
            if is_offline_mode():
                raise _UnreachableError(
                    CheckpointError(
                        "{name} has not been fetched before, and HF_HUB_OFFLINE forbids to ask the hub. Unset it, or give "
                        "the path of a folder.",
                        name=name,
                    )
                )
            return _fetched(name, repository, revision, progress, accept)
    except StoppedError:
        raise
    except _UnreachableError as error:
        if (folder := cached(name)) is not None:  # an older state, perhaps, but one that is here
            return folder
        raise error.error from error


def _fetched(
    name: str, repository: str, revision: str | None, progress: Progress, accept: Callable[[int], None] | None
) -> Path:
    from huggingface_hub import HfApi, hf_hub_download

    found = HfApi().model_info(repository, revision=revision, files_metadata=True)
    sizes = {sibling.rfilename: sibling.size or 0 for sibling in found.siblings or ()}
    files = needed(name, sizes)
    progress.total = sum(sizes[file] for file in files)
    if accept is not None:
        accept(progress.total)
    paths: list[str] = []
    for file in files:
        progress.file, before, bar = file, progress.done, _bar(progress, accept)
        # The first by the name that was asked for, which the cache then knows; the others of the same commit.
        which = found.sha if paths else revision
        paths.append(hf_hub_download(repository, file, revision=which, tqdm_class=bar))
        progress.done = before + Path(paths[-1]).stat().st_size  # also where it was in the cache
    return Path(paths[0]).parent


def needed(name: str, files: Iterable[str]) -> list[str]:
    """Which of a repository's files are read: config.json first, weights last."""
    there = set(files)
    if _CONFIG[0] not in there:
        if any(file.lower().endswith(".gguf") for file in there):
            raise CheckpointError(formats.told("gguf", name))
        if finding.ADAPTER in there:
            raise finding.adapter_error(name)
        raise CheckpointError(
            "{name} has no config.json: it is no model in Hugging Face layout. Choose another one.", name=name
        )
    chosen = [file for file in (*_CONFIG, *_TOKENIZER) if file in there]
    beside = {file for file in there if "/" not in file}
    if (main := finding.choose(name, beside)) is not None:
        chosen += sorted(beside & {finding.ADAPTER, finding.WEIGHTS}) if finding.ADAPTER in beside else []
        return [*chosen, main, *finding.shards(main, beside)]
    if finding.ADAPTER in there:
        raise finding.adapter_error(name)
    if (known := formats.by_name(sorted(beside))) is not None:
        raise CheckpointError(known)
    raise CheckpointError(
        "{name} has no weights as safetensors or .bin in its main folder. Choose another one, or convert them with "
        "save_pretrained.",
        name=name,
    )


def cached(name: str) -> Path | None:
    """The folder of a model that has been fetched before; asks no network."""
    if not is_name(name):
        return None
    repository, revision = _parts(name)
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(repository, _CONFIG[0], revision=revision)
    if not isinstance(config, str):
        return None
    folder = Path(config).parent
    return folder if _whole(folder) else None


def _whole(folder: Path) -> bool:
    """Whether weights and every shard of them are there: a download may have been stopped in between."""
    try:
        main = finding.choose(folder.name, [file.name for file in folder.iterdir() if file.is_file()])
    except CheckpointError:
        return False
    if main is None or not main.endswith(".json"):
        return main is not None
    try:
        if (folder / main).stat().st_size > JSON_LIMIT:
            return True
        parts = json.loads((folder / main).read_text(encoding="utf-8"))["weight_map"].values()
        return all((folder / str(part)).is_file() for part in set(parts))
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return True  # as whole as it gets: opening it says what is wrong with the index


def _parts(name: str) -> tuple[str, str | None]:
    found = NAME.fullmatch(name)
    if found is None:
        raise CheckpointError(
            "{name!r} is not the name of a model on a hub: they read owner/name, or owner/name@revision.",
            name=name[:200],
        )
    return found[1], found[2]


class _UnreachableError(Exception):
    """The hub cannot be asked; `error` says so to a person."""

    def __init__(self, error: CheckpointError) -> None:
        super().__init__(str(error))
        self.error = error


def _bar(progress: Progress, accept: Callable[[int], None] | None) -> Any:
    """A silent progress bar that counts for us: huggingface_hub reports to nothing else."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    class Bar(tqdm):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **{**options, "disable": True})
            progress.done += int(options.get("initial") or 0)

        def update(self, n: float | None = 1) -> None:
            progress.done += int(n or 0)
            if accept is not None and progress.done > progress.total:
                accept(progress.done)
            if progress.stop.is_set():
                raise StoppedError("The download was stopped. The part that has arrived is kept.")

    return Bar


@contextmanager
def _in_words(name: str) -> "Iterator[None]":
    """What huggingface_hub raises, as one sentence with the way out."""
    from huggingface_hub import errors

    try:
        yield
    except CheckpointError:
        raise
    except errors.GatedRepoError as error:
        raise CheckpointError(
            "{name} is open only to those who accepted its terms. Accept them on the hub, then set HF_TOKEN to a "
            "token of yours.",
            name=name,
        ) from error
    except errors.RevisionNotFoundError as error:
        raise CheckpointError(
            "{name} has no such revision. Give a branch, a tag or a commit of it, or leave the part after @ out.",
            name=name,
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise CheckpointError(
            "There is no model {name} on the hub, or it is private. Check the spelling; for a private one set "
            "HF_TOKEN.",
            name=name,
        ) from error
    except _UnreachableError:
        raise
    except Exception as error:  # the network in all its forms; huggingface_hub changes its HTTP library now and then
        raise _UnreachableError(
            CheckpointError(
                "The hub does not answer for {name} ({reason}). Check the connection and try again, or download the "
                "files elsewhere and give their folder.",
                name=name,
                reason=first_line(error),
            )
        ) from error
