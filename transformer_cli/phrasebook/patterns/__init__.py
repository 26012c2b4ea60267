"""The sentence patterns: functions that build an English sentence and its Italian translation.

The docstring of such a function is an example of what it builds.
"""
