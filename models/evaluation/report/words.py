"""What was heard beside what is written, word by word."""

from difflib import SequenceMatcher
from typing import Literal, NamedTuple


class Marked(NamedTuple):
    """A word of what was heard, or one that should have been."""

    word: str
    kind: Literal["", "extra", "missing"]  # "": it is in the text as well


def mark(text: str, heard: str) -> list[Marked]:
    """Marks where what was heard differs from the text.

    Args:
        text: Words as they are compared: lower case, without punctuation.
        heard: The same of what was heard.

    Returns:
        What was heard in order, with the words of the text that are missing where they should be.
        A word that was misread is a missing one, followed by an extra one.
    """
    written, spoken = text.split(), heard.split()
    marked = []
    matcher = SequenceMatcher(None, written, spoken, autojunk=False)
    for kind, start, end, from_heard, to_heard in matcher.get_opcodes():
        if kind == "equal":
            marked += [Marked(word, "") for word in spoken[from_heard:to_heard]]
            continue
        marked += [Marked(word, "missing") for word in written[start:end]]
        marked += [Marked(word, "extra") for word in spoken[from_heard:to_heard]]
    return marked
