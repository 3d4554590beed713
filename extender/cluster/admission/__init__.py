"""What is done to an object before it is validated: defaults, admission plugins, the strategies of the kinds. Nothing
is stored here.
"""
