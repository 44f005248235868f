"""A class: who leads or follows one in this session.

A page that is loaded again, or that comes back to another server, leads or follows on: the address of a student's tab
names the class, and the teacher's browser remembers its secret in a cookie.  So the role is the tab's, and one browser can
have a teacher in one tab and students in others.  What is drawn of a class, and what it is asked, stands in `class_door`.
"""

import asyncio
import contextlib
import logging
import os
import re
from urllib.parse import urlsplit

import streamlit as st

from vizformer.messages import N_, Message
from vizformer.web.catalogue import session_folders
from vizformer.web.classroom import rooms
from vizformer.web.classroom.requests import PATH, Pointing, Waiting
from vizformer.web.classroom.rooms import AWAY, BEAT, LONGEST, NoRoomError, Place, Room, Rooms, TooManyRoomsError, tidy
from vizformer.web.classroom.stores import MemoryStore, Store, StoreError
from vizformer.web.frame.sitemap import HOME, PAGES, TEACH
from vizformer.web.inside_streamlit import Runtime
from vizformer.web.link import state
from vizformer.web.turns import network

ROOM = "room"  # of a link: the code of the class that its tab follows
UNREACHED = N_("The store of the classes cannot be reached at the moment. Try again in a minute.")
COOKIE = "vizformer-class"  # K7M2QX.secret of a teacher
_LEADS, _TAKES, _FOLLOWS, _FREE, _SEEN, _AT = (  # (keys of buttons begin otherwise)
    f"classroom.{name}" for name in ("leads", "takes", "follows", "free", "seen", "at")
)
_ENDED, _LINKED, _COOKIE, _POINTS = (f"classroom.{name}" for name in ("ended", "linked", "cookie", "points"))
_OWN = ("lang", "slide")  # of the view: what stays the student's
_REMEMBERED = re.compile(r"([A-Z2-9]{6})\.([\w-]{20,60})", re.ASCII)

log = logging.getLogger("vizformer")

REDIS_URL = "VIZFORMER_REDIS_URL"


def _is_there(session: str) -> bool:
    return Runtime.exists() and Runtime.instance().is_active_session(session)


def _store() -> Store[Room]:
    """Where this server keeps its rooms: in its own memory, or in the Redis that the environment names."""
    url = os.environ.get(REDIS_URL, "")
    if not url:
        return MemoryStore()
    from vizformer.web.classroom.redis_store import RedisStore

    return RedisStore(url, rooms.write, rooms.read, keeps=2 * AWAY)


ROOMS = Rooms(_store(), _is_there)
WAITING, POINTING = Waiting(ROOMS), Pointing(ROOMS)

# --- before the page is drawn -----------------------------------------------------------------------------------------


def arrive() -> None:
    """Follows the class that the link names, or leads the one that this browser led when its page was loaded again.

    A link is followed once: while a student leaves, the browser may still send the address from before.
    """
    first = _LINKED not in st.session_state
    code = tidy(str(st.query_params[ROOM])) if ROOM in st.query_params else ""
    if code and code != st.session_state.get(_LINKED):
        st.session_state[_LINKED] = code
        if follows() != code:
            st.session_state[_ENDED] = not join(code)
    elif first:
        st.session_state[_LINKED] = ""
        if (known := _REMEMBERED.fullmatch(_cookie())) is not None:
            st.session_state[_COOKIE] = True  # it is taken back where it is of no use any more
            st.session_state[_TAKES] = known.groups()
    take_over()


def take_over() -> None:
    """Leads the class that this browser led before, as soon as nobody else does.

    The session from before the page was loaded again may still seem to be there for a moment; a second tab of the teacher
    leads once the first one is closed.
    """
    if (own := st.session_state.get(_TAKES)) is None:
        return
    code, secret = own
    try:
        ROOMS.look(code)
        if not ROOMS.take(code, secret, session_folders.current()):
            return
        st.session_state[_LEADS] = code, secret
    except StoreError:
        return
    except NoRoomError:
        pass
    st.session_state.pop(_TAKES, None)


def _cookie() -> str:
    return str(st.context.cookies.to_dict().get(COOKIE, "")) if Runtime.exists() else ""


def keep_up(page: str) -> None:
    """Takes a student who follows to where the teacher is, and tells the class where its teacher is."""
    if not st.session_state.get(_AT, "").startswith(f"{page}/"):
        st.session_state[_AT] = f"{page}/"
    place = _wanted()
    code = follows()  # (none where the class is over)
    state.carry(**({} if code is None else {ROOM: code}))
    if (own := leads()) is not None:
        state.listen(lambda where, parameters: _lead(own, where, parameters))
        return
    state.listen(None)
    if place is None:
        return
    if _file(place.page) != _file(page):  # seen once it is there: a run that is cut short goes nowhere
        st.switch_page(_file(place.page))
    st.session_state[_SEEN] = place.version
    here = {name: value for name, value in state.link().items() if name in _OWN}
    parameters = {**{name: value for name, value in place.parameters.items() if name not in _OWN}, **here}
    state.adopt(parameters)


def stand(page: str, part: str) -> None:
    """Notes at which part of a lesson, or station of the path, this session is: counted where it follows a class."""
    st.session_state[_AT] = f"{page}/{part}"
    if (code := follows()) is not None:
        ROOMS.follow(code, session_folders.current(), st.session_state[_AT])


def _file(page: str) -> str:
    """The file of a page; of the first one, whatever its address is."""
    return PAGES.get(page, HOME).file


def _lead(own: tuple[str, str], page: str, parameters: dict[str, str]) -> None:
    """Tells the class where its teacher is; who looks at its counts leaves it where it is."""
    if page == TEACH.url:
        return
    with contextlib.suppress(NoRoomError, StoreError):  # it is said at the next look at the button
        ROOMS.move(*own, page, parameters)


def _wanted() -> Place | None:
    """The teacher's place, if the student follows and is not there yet."""
    place = look()
    if place is None or st.session_state.get(_FREE) or place.version == seen():
        return None
    return place


def look() -> Place | None:
    """The place of the teacher of the class that this session follows."""
    code = follows()
    if code is None:
        return None
    ROOMS.follow(code, session_folders.current(), st.session_state.get(_AT, "/"))
    try:
        return ROOMS.look(code)
    except StoreError:  # it is looked at again
        return None
    except NoRoomError:
        leave()
        st.session_state[_ENDED] = True
        return None


# --- what holds now ---------------------------------------------------------------------------------------------------


def leads() -> tuple[str, str] | None:
    own: tuple[str, str] | None = st.session_state.get(_LEADS)
    return own


def follows() -> str | None:
    """The code of the class that this session follows, also while the student looks around alone."""
    code: str | None = st.session_state.get(_FOLLOWS)
    return code


def is_to_lead() -> bool:
    """Whether this session waits to lead the class that its browser led before."""
    return _TAKES in st.session_state


def led() -> tuple[str, str] | None:
    """The class that this session leads, as `leads`; None where the class is over, which ends the leading."""
    if (own := leads()) is not None:
        try:
            ROOMS.look(own[0])
        except StoreError:
            pass
        except NoRoomError:
            forget()
            st.session_state[_ENDED] = True
            return None
    return own


def points() -> bool:
    """Whether this session leads a class that is to see its pointer."""
    return leads() is not None and bool(st.session_state.get(_POINTS))


def is_free() -> bool:
    return bool(st.session_state.get(_FREE))


def seen() -> int:
    version: int = st.session_state.get(_SEEN, 0)
    return version


def has_ended() -> bool:
    return bool(st.session_state.pop(_ENDED, False))


def address(code: str) -> str:
    """The address at which a browser asks for the changes of a class."""
    return f"{_base()}{PATH}/{code}"


def _base() -> str:
    base = st.get_option("server.baseUrlPath").strip("/")
    return f"/{base}" if base else ""


def remembered() -> str:
    """The cookie by which the browser remembers the class that it leads, or forgets it; empty if there is neither."""
    own, seconds = leads() or st.session_state.get(_TAKES), int(LONGEST)
    value = "" if own is None else ".".join(own)
    if value:
        st.session_state[_COOKIE] = True
    elif st.session_state.get(_COOKIE):
        seconds = 0
    else:
        return ""
    secure = "; Secure" if urlsplit(st.context.url or "").scheme == "https" else ""
    return f"{COOKIE}={value}; Max-Age={seconds}; Path={_base() or '/'}; SameSite=Strict{secure}"


# --- what is pressed --------------------------------------------------------------------------------------------------


def start() -> Message | None:
    """Opens a class that this session leads; why, where there is none."""
    leave()
    try:
        own = ROOMS.open(session_folders.current(), network(st.context.ip_address))
    except TooManyRoomsError:
        return N_(
            "No class was started: this server or your network already has the largest allowed number of "
            "classes. Try again later."
        )
    except StoreError:
        return UNREACHED
    st.session_state[_LEADS] = own
    _lead(own, state.page(), state.link())
    return None


def join(code: str) -> bool:
    """Follows a class; whether there may be one of this code: where nobody can say it now, the browser asks again."""
    try:
        ROOMS.look(code)
    except NoRoomError:
        return False
    except StoreError:
        pass
    leave()
    st.session_state[_FOLLOWS] = code
    return True


def let_go() -> None:
    """Stops following the teacher's moves; the student stays in the class."""
    st.session_state[_FREE] = True


def come_back() -> None:
    """Follows the teacher's moves again."""
    st.session_state[_FREE], st.session_state[_SEEN] = False, 0


def leave() -> None:
    """Leaves the class that this session follows."""
    if (code := follows()) is not None:
        st.session_state[_LINKED] = code  # the address may say so once more
        ROOMS.follow("", session_folders.current())
    for name in (_FOLLOWS, _FREE, _SEEN, _TAKES):
        st.session_state.pop(name, None)


def end(code: str, secret: str) -> None:
    forget()
    with contextlib.suppress(NoRoomError, StoreError):
        ROOMS.close(code, secret)


def show_pointer(shown: bool) -> None:
    """Whether the class is to see the pointer of this session's teacher."""
    st.session_state[_POINTS] = shown


def forget() -> None:
    """Forgets the class that this session leads."""
    st.session_state.pop(_LEADS, None)


# The rooms of this server's classes: in its own memory, or in the Redis that it shares with others.
def is_shared() -> bool:
    """Whether several servers share the classes."""
    return bool(os.environ.get(REDIS_URL, ""))


async def attend() -> None:
    """Notes which teachers are there, until it is cancelled."""
    while True:
        await asyncio.sleep(BEAT)
        try:
            await asyncio.to_thread(ROOMS.beat)
        except Exception:  # the next one comes all the same: without it all classes end
            log.exception("the classes could not be noted")
