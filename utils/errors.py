"""The one exception for faults in what a user gave."""


class InputError(ValueError):
    """A fault in a user's input: a file, a config key, a flag, a text.

    The message names what was found, what was expected and what to do. Commands print it as one
    clear message and exit non-zero without a traceback; any other exception is a bug of ours.
    """
