"""Sound files, and what is measured in them: pitch, energy, spectral envelope, level."""
