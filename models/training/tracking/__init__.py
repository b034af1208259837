"""What a run reports: log lines, curves, figures and audio."""
