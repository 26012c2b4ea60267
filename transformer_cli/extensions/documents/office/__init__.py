"""Documents of word processors and readers of books: zip files with XML parts."""
