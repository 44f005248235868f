"""Numbers as they travel in JSON: short, and read as the whole number would be."""

from collections.abc import Sequence

_DIGITS = (4, 6, 9)  # four digits are more than a colour shows


def short(value: float, decimals: Sequence[int]) -> float:
    """The number with the fewest significant digits, at least four, that is written alike with each of these `decimals`.

    A number that was rounded is not to be rounded again: 5.1355 with four digits is 5.135 or 5.136, which no longer says
    whether the two decimals of the whole number are .13 or .14.
    """
    for digits in _DIGITS:
        found = float(f"{value:.{digits}g}")
        if all(f"{found:.{n}f}" == f"{value:.{n}f}" and not _is_half(found, n) for n in decimals):
            return found
    return value


def _is_half(value: float, decimals: int) -> bool:
    """Whether it lies between two numbers of so many decimals, so that Python and JavaScript may take different ones."""
    return 2 * abs(value) * 10.0**decimals % 2 == 1
