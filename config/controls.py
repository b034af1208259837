"""Ranges of the settings of synthesis."""

CONTROL_RANGE = (0.1, 10.0)  # of factors on pitch, energy and durations
MOST_SHIFT_HZ = 500.0  # up or down: more than the whole range of a voice
MOST_SEED = 2**63 - 1  # PyTorch's largest
