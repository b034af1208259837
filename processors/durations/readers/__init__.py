"""Formats that durations are imported from: a file each."""
