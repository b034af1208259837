"""Vocoders: mel to waveform. One module per model; the file name is the model's name."""
