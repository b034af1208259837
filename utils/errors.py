"""Exceptions for faults in what a user gave."""


class InputError(ValueError):
    """A fault in a user's input: a file, a config key, a flag, a text.

    The message names what was found, what was expected and what to do. Commands print it as one
    clear message and exit non-zero without a traceback; any other exception is a bug of ours.
    """


class UtteranceError(ValueError):
    """An utterance that cannot be used; the message says why, and what to do.

    Stage 1 lists it as rejected and goes on with the others.
    """


def described(error: Exception) -> str:
    """An error in one line, as a traceback ends."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"
