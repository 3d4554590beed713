"""DynamicResources: pods get the devices that their claims ask for. No API writes here, and nothing about nodes without devices."""
