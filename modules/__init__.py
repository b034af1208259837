"""Building blocks of networks. They import torch and numpy; `compiled` also numba."""
