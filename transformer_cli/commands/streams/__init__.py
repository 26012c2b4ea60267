"""What a command reads and writes: files, pipes, terminals, and the words typed at a prompt."""
