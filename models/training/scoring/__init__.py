"""Metrics of stage 4 on validation utterances during training."""
