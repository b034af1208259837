"""Files, configuration files, logging and other helpers that know nothing of speech."""

__version__ = "0.1.0"
