"""Checks for failures of speech; each file ends with the record of its check."""
