"""The question that a class is asked, and the answers of its students."""

import contextlib
import secrets
from collections import Counter

import streamlit as st

from vizformer.web.classroom.rooms import NoRoomError, Place
from vizformer.web.classroom.stores import StoreError
from vizformer.web.frame import classroom
from vizformer.web.frame.class_rooms import ROOMS

_VOTER = "classroom.voter"


def question() -> Place | None:
    """What the class of this session is asked, by its teacher or for a student who follows; None where nothing is."""
    if (own := classroom.leads()) is not None:
        try:
            place = ROOMS.look(own[0])
        except (NoRoomError, StoreError):
            return None
    else:
        found = None if classroom.is_free() else classroom.look()
        if found is None:
            return None
        place = found
    return place if place.question else None


def ask(asked: str) -> None:
    """Asks the class that this session leads; the empty question takes back what was asked."""
    if (own := classroom.leads()) is not None:
        with contextlib.suppress(NoRoomError, StoreError):
            ROOMS.ask(*own, asked)


def show_answer() -> None:
    if (own := classroom.leads()) is not None:
        with contextlib.suppress(NoRoomError, StoreError):
            ROOMS.show(*own)


def answer(asked: str, said: str) -> bool:
    """Sends this student's answer; whether it was taken."""
    code, voter = classroom.follows(), st.session_state.setdefault(_VOTER, secrets.token_urlsafe(9))
    if code is None:
        return False
    try:
        return ROOMS.answer(code, asked, voter, said)
    except (NoRoomError, StoreError):
        return False


def answers() -> Counter[str]:
    """How often the class of this session's teacher has given each answer."""
    if (own := classroom.leads()) is None:
        return Counter()
    try:
        return ROOMS.answers(*own)
    except (NoRoomError, StoreError):
        return Counter()
