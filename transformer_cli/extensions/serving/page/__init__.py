"""The page of a server: one HTML file with its styles and its program, and how it is sent."""
