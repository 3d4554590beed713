"""The published API types as a table, and objects read by them from JSON and protobuf. Rules about values are in
`validation`.
"""
