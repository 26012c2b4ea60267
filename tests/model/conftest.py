from hypothesis import HealthCheck, settings

# A busy machine must not fail a test: no limit of time, and the same examples each time.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")
