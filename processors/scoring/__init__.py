"""Metrics and checks of single utterances, and the features and recognisers they use."""
