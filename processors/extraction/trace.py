"""How far the work on an utterance has come."""

import time
from dataclasses import dataclass, field

from processors.records import AlignmentScore


@dataclass
class Trace:
    """How far the work on an utterance has come, for the report and for rejections.

    Attributes:
        part: What is being done: "audio", "text", "alignment", "mel", "f0", "network" or "store".
        cpu_seconds: CPU time of this process by part, summed over utterances.
        audio_seconds: Length of the recording as far as it could be read, else 0.
        score: How well it fits its text, where the aligner has said so.
    """

    part: str = "audio"
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    audio_seconds: float = 0.0
    score: AlignmentScore | None = None
    _since: float = field(default_factory=time.process_time)

    def start(self, part: str) -> None:
        """Ends the running part and starts another one."""
        self.stop()
        self.part = part

    def stop(self) -> None:
        """Adds the time since the last call to the running part."""
        now = time.process_time()
        self.cpu_seconds[self.part] = self.cpu_seconds.get(self.part, 0.0) + now - self._since
        self._since = now
