"""Alignment: when each phone of an utterance is spoken. An aligner is a file here, by its name."""
