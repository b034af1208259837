"""What training reads: datasets and batches."""
