"""Formats that alignments are exported to: a file each."""
