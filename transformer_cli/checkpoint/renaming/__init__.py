"""Files of a run get other names, so that at any moment, also after a kill, an earlier or a later state is whole."""
