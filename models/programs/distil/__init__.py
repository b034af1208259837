"""Corpora of the speech of other programs."""
