"""Alignment of phones and frames: the joint aligner's network, searches for the best path."""
