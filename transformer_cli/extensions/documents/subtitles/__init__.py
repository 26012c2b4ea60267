"""Subtitles: sentences that run through several cues are translated whole and divided again."""
