"""Helpers without knowledge of speech: one noun per module."""
