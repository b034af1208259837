"""Blind listening tests: a page for listeners, and what their answers say."""
