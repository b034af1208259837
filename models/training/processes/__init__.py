"""Processes of a run: exchange between them, and the signals that end them."""
