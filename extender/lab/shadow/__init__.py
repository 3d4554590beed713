"""The shadow: what this configuration would decide beside the scheduler that decides. Nothing in here writes to the API
server.
"""
