"""A hidden Markov model of the phones of a corpus, learnt from its recordings and texts alone."""
