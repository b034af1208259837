"""SSML (W3C Recommendation, version 1.1): a subset, read as runs of text."""
