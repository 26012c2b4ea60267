"""What each command does: the compositions of the layers below."""
