"""The page of stage 4: scores, sounds, mels and pitch of every utterance, in one file."""
