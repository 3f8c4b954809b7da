"""How nodes talk: codecs, sessions, membership, spreading and queries, pure; `transports` does the
I/O."""
