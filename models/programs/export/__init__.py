"""Voices for other programs: graphs of ONNX, a front end and a runner without PyTorch."""
