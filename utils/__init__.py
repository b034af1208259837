"""Files, configuration files, logging and other helpers that know nothing of speech."""
