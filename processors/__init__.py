"""From utterances to features, batches and back: text, audio, alignment, storage, scores."""
