"""The arguments and options of commands, as Typer reads them. Each start imports these files, so they import nothing slow."""
