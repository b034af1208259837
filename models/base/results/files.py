"""Names of files in the folder of results of an experiment."""

METADATA = "metadata.jsonl"  # stage 3: a line for each audio file
SINGLE = "single"  # folder of what stage 3 wrote in this mode
# stage 4 writes these next to it, or into its folder COMPARISON where several are compared
SCORES = "scores.json"
UTTERANCES = "scores.jsonl"
PAGE = "report.html"
COMPARISON = "comparison"
