"""Acoustic features of signals, and their alignment with those of the recording."""
