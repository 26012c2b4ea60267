"""Import: pairs out of translation memories, spreadsheets and archives, as plain text that a config reads."""
