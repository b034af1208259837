"""Checks for failures of speech: of its sound, and of its words."""
