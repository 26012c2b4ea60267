"""The words of both languages: their tables, and the forms that each word takes."""
