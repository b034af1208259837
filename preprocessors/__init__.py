"""From a corpus on disk to utterances: one module per corpus layout."""
