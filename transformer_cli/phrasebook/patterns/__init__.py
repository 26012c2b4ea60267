"""The sentence patterns: functions that build an English sentence and its Italian translation."""
