"""Stage 1: from the utterances of a corpus to a feature store."""
