"""Command lines: argument parsing and one call each."""
