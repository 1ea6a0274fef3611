"""The `mmdrl` command; one file per subcommand."""
