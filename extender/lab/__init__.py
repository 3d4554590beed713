"""What plays, records or compares decisions. The lab attaches to a scheduler by its subscribers and reporters."""
