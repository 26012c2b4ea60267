"""The interfaces of a server: the endpoints of each, over one service."""
