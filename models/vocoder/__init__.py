"""Vocoders: mel to waveform. One package or module per model; its name is the model's name."""
