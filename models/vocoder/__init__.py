"""Vocoders: mel to waveform. One room or file per model; its name is the model's name."""
