"""What a translator needs beside training and translating. The core imports nothing from here; only tables of names reach here."""
