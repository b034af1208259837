"""Stage 2: trainer, data, updates, validation, scores; mels that an acoustic model predicts."""
