"""Metrics and checks of single utterances (stage 4), the features and recognisers they use."""
