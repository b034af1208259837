"""Stage 3: what it reads, synthesises and writes."""
