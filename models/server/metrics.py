"""Counters of a server in the text format of Prometheus."""

from collections import Counter


class Metrics:
    """What the server has done since its start."""

    def __init__(self) -> None:
        self.requests: Counter[int] = Counter()  # by status
        self.active = 0  # requests for speech that wait or are served
        self.sound_s = 0.0
        self.synthesis_s = 0.0
        self.first_bytes = 0  # responses that began
        self.first_byte_s = 0.0  # the sum of their delays

    def text(self, *, n_open: int, open_mb: float) -> str:
        """All metrics.

        Args:
            n_open: Voices in memory.
            open_mb: Their weights, MB.
        """
        by_status = [
            (f'requests_total{{status="{status}"}}', count)
            for status, count in sorted(self.requests.items())
        ]
        rows = [
            ("requests_total", "counter", "Responses by status", by_status),
            ("requests_active", "gauge", "Requests that wait or are served", self.active),
            ("sound_seconds_total", "counter", "Synthesised sound", self.sound_s),
            ("synthesis_seconds_total", "counter", "Time spent on it", self.synthesis_s),
            (
                "first_byte_seconds",
                "summary",
                "Time to the first byte of sound",
                [
                    ("first_byte_seconds_sum", self.first_byte_s),
                    ("first_byte_seconds_count", self.first_bytes),
                ],
            ),
            ("voices_open", "gauge", "Voices in memory", n_open),
            ("voices_bytes", "gauge", "Memory of their weights", open_mb * 1e6),
        ]
        lines = []
        for name, kind, help_text, value in rows:
            lines += [f"# HELP arion_{name} {help_text}", f"# TYPE arion_{name} {kind}"]
            values = value if isinstance(value, list) else [(name, value)]
            lines += [f"arion_{sample} {number}" for sample, number in values]
        return "\n".join(lines) + "\n"
