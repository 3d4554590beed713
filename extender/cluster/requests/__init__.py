"""What a request says: what it is about, its query parameters, the forms that it accepts, and its body. Nothing is
looked up.
"""
