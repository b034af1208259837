"""Building blocks of networks. They import torch and nothing else."""
