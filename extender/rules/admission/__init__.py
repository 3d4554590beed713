"""What is done to an object before it is validated: defaults, admission plugins, strategies. Nothing is stored here."""
