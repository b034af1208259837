"""Building blocks of networks. They import torch and numpy; `alignment_search` also numba."""
