"""Generated data with the lengths of LJSpeech: training and benchmarks without a corpus."""
