"""The dump of TensorFlowTTS and of Graphcore's FastSpeech 2: written from a corpus, and read."""
