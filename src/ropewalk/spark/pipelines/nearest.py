"""What somebody may have meant who wrote a name that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a refusal: the most similar name, or all there are."""
    names = list(known)
    if similar := get_close_matches(name, names, n=1, cutoff=0.5):
        return f"; did you mean {similar[0]}?"
    return f"; there are {', '.join(names)}" if names else ""
