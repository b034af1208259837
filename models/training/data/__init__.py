"""What training reads: datasets and batches, and mels predicted for vocoders."""
