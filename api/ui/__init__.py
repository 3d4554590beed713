"""The page for people: HTML from answers, by plain functions over values. It knows neither the engine nor requests."""
