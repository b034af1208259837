"""Waveforms from magnitudes without a trained network: Griffin-Lim, also as a graph of ONNX."""
