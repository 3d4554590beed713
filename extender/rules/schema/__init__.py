"""The published API types, and objects read by them. Rules about values are in `validation`."""
