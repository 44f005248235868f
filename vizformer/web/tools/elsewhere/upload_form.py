"""The form of the page From other programs: a file of arrays, and the tokens between which they attend."""

from threading import Lock

import streamlit as st

from vizformer.analysis.heads.attention_arrays import PAGE, AttentionArrays, Tokens
from vizformer.analysis.heads.attention_files import read_attention
from vizformer.checkpoints.any_checkpoint import check_characters
from vizformer.errors import VizformerError
from vizformer.messages import N_
from vizformer.web.catalogue import uploads
from vizformer.web.frame import presses
from vizformer.web.tools.elsewhere import pictures
from vizformer.web.widgets import dropzone
from vizformer.web.words import errors
from vizformer.web.words.i18n import _, show_info, show_markdown, show_note

_ROUND = "elsewhere.round"  # of uploads: a new one begins with an empty box
_CHARACTERS = 100_000  # of tokens
_ONE_AT_A_TIME = Lock()  # while a file is read, it takes several times the memory that stays


def hand_in() -> None:
    """Takes a file, and says why it cannot be shown; what is in it belongs to this session alone."""
    show_markdown(
        "Attention weights of any program, as `.npz`, `.npy`, `.safetensors` or `.json`: one array `[layers, "
        "heads, queries, keys]`, or `[heads, queries, keys]` for each layer. No model is needed. In a "
        "notebook `vf.view(outputs, tokens)` shows the outputs of a transformers model or of its "
        "`generate()`."
    )
    if not uploads.is_on():
        show_info("This server takes no uploads. In Python `vf.view(arrays, tokens)` shows them.")
        return
    number = st.session_state.setdefault(_ROUND, 0)
    most = min(PAGE.file, uploads.limit())
    with st.form("elsewhere.form"):
        st.html(dropzone.style(_("Choose a file")))
        file = st.file_uploader(
            _("A file of attention weights: .npz, .npy, .safetensors or .json"),
            key=f"elsewhere.file.{number}",
            max_upload_size=max(1, most // 2**20),
        )
        left, right = st.columns(2)
        queries = left.text_area(
            _("Tokens of the queries (may be empty)"),
            placeholder=_("one per line, or with blanks between them"),
            key="elsewhere.queries",
        )
        keys = right.text_area(
            _("Tokens of the keys, if they differ"),
            placeholder=_("one per line, or with blanks between them"),
            key="elsewhere.keys",
        )
        sent = presses.submit(_("Show"), key="elsewhere.show", type="primary")
    show_note(
        "At most {limit} MB. Only numbers and texts are read; no program is run here. A .npz or .json may hold the tokens "
        "itself, as texts called tokens, or query_tokens and key_tokens, or source_tokens and target_tokens; a trace that "
        "was saved has them.",
        limit=most // 2**20,
    )
    if sent:
        pictures.forget()
        try:
            if file is None:
                st.session_state[pictures.ERROR] = N_("Choose a file first.")
            else:
                pictures.keep(_read(file.name, file.getvalue(), queries, keys))
        except VizformerError as error:
            st.session_state[pictures.ERROR] = error.message
        finally:
            uploads.forget([] if file is None else [file.file_id])
            st.session_state[_ROUND] = number + 1
        st.rerun()  # with an empty box for files
    if (message := st.session_state.pop(pictures.ERROR, None)) is not None:
        errors.show(message)


def _read(name: str, content: bytes, queries: str, keys: str) -> dict[str, AttentionArrays]:
    with _ONE_AT_A_TIME:
        return read_attention(name, content, Tokens(_tokens(queries), _tokens(keys)))


def _tokens(text: str) -> list[str]:
    """One per line where there are lines; else what stands between blanks."""
    check_characters(text, _CHARACTERS)
    lines = [line for line in text.splitlines() if line.strip()]
    return [line.strip() for line in lines] if len(lines) > 1 else text.split()
