"""As much of a long text as a page has room for."""


def shortened(text: str, characters_max: int) -> tuple[str, int]:
    """The beginning, and how many characters are left out.

    >>> shortened("hello", 5), shortened("hello", 2)
    (('hello', 0), ('he', 3))
    """
    return text[:characters_max], max(0, len(text) - characters_max)
