"""The feature store, and what training reads from it: utterances, segments, batches."""
