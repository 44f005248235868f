"""The box on the page Model report that opens models by path, by their name on a hub, or from files of the reader's."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import streamlit as st

from vizformer.checkpoints.tensors.memory import size
from vizformer.errors import VizformerError
from vizformer.messages import N_
from vizformer.web.catalogue import hub, local_paths, model_cache, recents, safe_zip, sources, uploads
from vizformer.web.frame import presses, sitemap
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import model_input
from vizformer.web.words import errors
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _, show_info, show_note, show_text, translate

_WANTED = "vizformer.fetching"  # the name of the download that this session waits for
_BESIDE = "vizformer.opening.beside"  # whether what is opened stands beside the model that is shown, not in its place
_FOR = "vizformer.fetching.beside"  # the same of the download
_OPENED = "vizformer.opening.opened"  # a model beside it is there: for the page that shows both
_ERROR = "vizformer.opening.error"  # what became of it, until the reader does something else
_ROUND = "vizformer.opening.round"  # of uploads: a new one begins with an empty widget
_HUB_NAME = "opening.hub"
_PATH = "opening.path"
_NOTED = "vizformer.opening.noted"  # the models that this session put on the list of recent ones last


def arrive() -> None:
    """Chooses the model that this session waits for, when it is there, and goes to Side by side where that is one beside
    another.  Call it before the view is read.
    """
    _fetched()
    if st.session_state.pop(_OPENED, False) and state.page() != sitemap.SIDE_BY_SIDE.url:
        st.switch_page(sitemap.SIDE_BY_SIDE.file)


def _fetched() -> None:
    name = st.session_state.get(_WANTED)
    download = hub.look(name) if name is not None else None
    if name is None or (download is not None and not download.done):
        return
    del st.session_state[_WANTED]
    if download is not None and download.error is not None:
        st.session_state[_ERROR] = (download.error, download.stopped)
    elif download is not None:
        st.session_state[_BESIDE] = st.session_state.pop(_FOR, False)
        _choose(ModelRef.parse(f"hub/{name}"))


@guarded()
def progress() -> None:
    """The download that this session waits for, or what went wrong with it."""
    with st.container():  # always there: a box below that moved down would forget that it was open
        if (name := st.session_state.get(_WANTED)) is not None:
            _download(name)
        elif (found := st.session_state.pop(_ERROR, None)) is not None:
            message, stopped = found
            if stopped:
                st.info(translate(message, plain))
            else:
                errors.show(message)


@st.fragment(run_every=1.0)
@guarded()
def _download(name: str) -> None:
    download = hub.look(name)
    if download is None or download.done or st.session_state.get(_WANTED) != name:
        st.rerun()
    seen = download.progress
    with st.container(border=True):
        words, button = st.columns([4, 1], vertical_alignment="center")
        with words:
            if seen.total:
                done = min(seen.done, seen.total)
                said = _("{name}: {done} of {total}", name=plain(name), done=size(done), total=size(seen.total))
                st.progress(done / seen.total, text=said)
                st.text(seen.file)
            else:
                show_text("Asking the hub for {name} …", name=name)
        button.button(_("Stop"), on_click=_leave, args=(name,), width="stretch")


def _leave(name: str) -> None:
    hub.leave(name)
    st.session_state.pop(_WANTED, None)


def offer(model: ModelRef) -> bool:
    """A button that fetches the model of a link; whether there is something to offer."""
    if model.source != "hub" or not hub.is_on():
        return False
    if st.session_state.get(_WANTED) != model.id:
        show_info("{name} has not been fetched to this server yet.", name=model.id)
        st.button(_("Fetch {name}", name=plain(model.id)), on_click=_fetch, args=(model.id,), type="primary")
    return True


@guarded()
def box(*, unfolded: bool = False, beside: bool = False) -> None:
    """The ways that this server has for this session, folded away unless they are what the page is for."""
    by_path, view = local_paths.allowed(), state.view()
    if by_path:
        _note(view.model, view.other)
    ways = [way for way, on in ((_from_hub, hub.is_on()), (_from_files, uploads.is_on())) if on]
    if not ways and not by_path:
        if unfolded:
            show_info(
                "This server does not open models of its visitors. Start VizFormer on your own computer to open yours."
            )
        return
    with st.container() if unfolded else st.expander(_("Open another model")):
        if not beside and view.model.is_from_elsewhere and sources.is_there(view.model):
            label = _("Compare with {name} on the page Side by side", name=plain(sources.title(view.model)))
            beside = st.checkbox(label, key="opening.beside")
        st.session_state[_BESIDE] = beside
        if by_path:
            _from_path()
            _recent()
        for way, column in zip(ways, st.columns(len(ways), gap="medium") if ways else (), strict=True):
            with column:
                way()


def _from_path() -> None:
    with st.form("opening.path.form", border=False):
        box, button = st.columns([3, 1], vertical_alignment="bottom")
        box.text_input(
            _("Path on this computer"), placeholder="~/models/tiny-gpt2", key=_PATH, max_chars=local_paths.LONGEST + 1
        )  # what is cut off there is still too long
        with button:
            st.form_submit_button(_("Open this path"), on_click=_open_typed, width="stretch")
    show_note(
        "The folder of a model, or a file of bare weights. Links do not contain the path; only browsers on "
        "this computer open them."
    )


def _open_typed() -> None:
    try:
        model = local_paths.add(str(st.session_state.get(_PATH, "")))
    except VizformerError as error:
        st.session_state[_ERROR] = (error.message, False)
    else:
        st.session_state[_PATH] = ""
        _choose(model)


def _note(*models: ModelRef | None) -> None:
    """Puts the models that are looked at on the person's list, once."""
    noted = st.session_state.get(_NOTED, ())
    named = [model for model in models if model is not None and model.source in ("path", "hub")]
    st.session_state[_NOTED] = there = [model for model in named if model in noted or sources.is_there(model)]
    for model in reversed([model for model in there if model not in noted]):  # the one that is shown stands first
        name = str(sources.folder(model)) if model.source == "path" else model.id
        recents.note(recents.Recent(model.source, name, str(model).removeprefix(str(model.base))))


def _recent() -> None:
    """A button for each model opened last, if it is there, and one that empties the list."""
    bases = [model.base for model in (state.view().model, state.view().other) if model is not None]
    shown = [(model, name) for model, name in _listed() if model.base not in bases]
    if not shown:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(_("Recently opened"), width="content")
        titles = [sources.title(model) for model, __ in shown]
        for (model, name), title in zip(shown, titles, strict=True):
            label = title if titles.count(title) == 1 else "/".join(Path(name).parts[-2:])
            st.button(plain(label), key=f"opening.recent.{model}", help=plain(name), on_click=_choose, args=(model,))
        st.button(_("Forget these"), type="tertiary", on_click=recents.forget)


def _choose(model: ModelRef) -> None:
    """Shows a model that was opened: in the place of the one that is shown, or beside it."""
    if not st.session_state.get(_BESIDE):
        state.update(model=model)
        return
    if model.base == state.view().model.base:
        about = N_("This is the first model itself. Open a model trained from it, or the one it was trained from.")
        st.session_state[_ERROR] = (about, False)
        return
    st.session_state[_OPENED] = True
    state.update(other=_like(state.view().model, model), second="", position=None)
    state.unsay("layer", "head")  # what has moved most is shown


def _like(first: ModelRef, model: ModelRef) -> ModelRef:
    """A model under the assumptions and in the precision of the first one, where it opens so."""
    alike = replace(model, answers=first.answers, dtype=first.dtype)
    if alike == model or model != model.base:  # (chosen from the list, as it was opened before)
        return model
    try:
        model_cache.shape(alike)
    except VizformerError:
        return model
    return alike


def _listed() -> Iterator[tuple[ModelRef, str]]:
    """The models of the person's list that can be opened now, each with its path or its name on a hub."""
    for recent in recents.opened():
        by_path = recent.source == "path"
        base = local_paths.named(Path(recent.name)) if by_path else ModelRef.parse(f"hub/{recent.name}")
        if sources.is_there(base) if by_path else hub.is_on() and base.source == "hub":
            answered = ModelRef.parse(f"{base}{recent.answers}")
            yield (answered if answered.base == base else base), recent.name


def _from_hub() -> None:
    with st.form("opening.hub.form", border=False):
        st.text_input(_("Name on the hub"), placeholder="owner/name", key=_HUB_NAME, max_chars=300)
        st.form_submit_button(_("Fetch and open"), on_click=_fetch_typed)
    show_note(
        "VizFormer fetches only the files it reads, at most {limit}, into the cache of huggingface_hub on "
        "its own computer. It sends no request to the hub before you press the button.",
        limit=size(hub.limit()),
    )


def _fetch_typed() -> None:
    _fetch(str(st.session_state.get(_HUB_NAME, "")).strip())


def _fetch(name: str) -> None:
    if not name:
        return
    try:
        hub.start(name)
    except VizformerError as error:
        st.session_state[_ERROR] = (error.message, False)
    else:
        st.session_state[_WANTED], st.session_state[_FOR] = name, st.session_state.get(_BESIDE, False)


def _from_files() -> None:
    limit = uploads.limit()
    number = st.session_state.setdefault(_ROUND, 0)
    st.html(model_input.style(_("Choose files")))
    with st.form("opening.files.form", border=False):
        chosen = st.file_uploader(
            _("Files of a model, or one zip: drop them here"),
            accept_multiple_files=True,
            key=f"opening.files.{number}",
            max_upload_size=max(1, -(-limit // 2**20)),
        )
        sent = presses.submit(_("Upload and open"), key="open.upload")
    show_note(
        "config.json, weights and tokenizer, or bare weights. At most {limit}, packed and unpacked, and "
        "{n} files. Only this session can open them. They are removed when it ends; if you upload more "
        "than {kept} models, the oldest one is removed.",
        limit=size(limit),
        n=safe_zip.MOST,
        kept=uploads.KEPT,
    )
    if not sent:
        return
    try:
        with st.spinner(_("Reading the files …"), show_time=False):
            model = uploads.add([(file.name, file) for file in chosen])
    except VizformerError as error:
        st.session_state[_ERROR] = (error.message, False)
    else:
        _choose(model)
    finally:
        uploads.forget([file.file_id for file in chosen])
        st.session_state[_ROUND] = number + 1
    st.rerun()
