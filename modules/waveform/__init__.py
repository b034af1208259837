"""Waveforms from mels without a trained network: magnitudes, phases, Griffin-Lim."""
