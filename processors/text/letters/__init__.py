"""Text as letters, as letters mixed with phones, and as the symbols of NVIDIA's models."""
