"""What is tested of each translation, how a suspect is repaired, and which translations may be called green.

`doubts` asks all questions about a translation, with `numbers_in_text`, `months_and_days`, `signs` and `brackets` for single kinds.
`repair` searches a suspect again and chooses by one score; `line_repairs`, `signs_in_place` and `dates_in_place` make single lost parts come back.
`quality` reads the calibration of a run, with `reverse_reading` for the model of the other direction.
"""
