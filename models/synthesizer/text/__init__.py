"""From text to passages: files of texts, clauses, and the phones of a voice."""
