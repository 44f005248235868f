"""A variable of the thread or the task that has another value for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Value = TypeVar("Value")


@contextmanager
def held(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Sets the variable to this value for the duration of the `with` block."""
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)
