"""Audio files, and signal analysis: pitch, spectral envelope, mel-cepstrum, speech level."""
