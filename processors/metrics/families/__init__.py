"""Metrics, one file per family, which ends with the records of its metrics."""
